"""The part between the network and the page: whom the server answers, and what a browser may write.

Installed by ``app_hooks.py`` before the server is made, so that plain ``panel serve app`` has it. SECURITY.md has the
promises, ``tests/app/server/test_guard.py`` and ``tests/browser/test_guard_browser.py`` hold them.
"""
