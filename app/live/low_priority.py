"""Low-priority threads for work beside the event loop."""

from concurrent.futures import ThreadPoolExecutor

from sgmcmc_lab.samplers.low_priority import step_back


def workers(n: int, name: str) -> ThreadPoolExecutor:
    """A pool of ``n`` threads for what holds the loop up if it does it itself."""
    return ThreadPoolExecutor(max_workers=n, thread_name_prefix=name, initializer=step_back)
