"""How the server's processes end: the first alone, asked or killed, takes all others with it, without a traceback."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import psutil
import pytest

from sgmcmc_lab.app.state import DEFAULT
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import functions
from tests.browser import ROOT, free_port, serve
from tests.helpers.cases import for_each

SERVER = """
import os, sys
from sgmcmc_lab.app.server import life
life.begin()
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
sockets = bind_sockets(int(sys.argv[1]), "127.0.0.1")
server = {kind}(lambda request: None)
server.start(int(sys.argv[2]))
server.add_sockets(sockets)
loop = IOLoop.current()
loop.add_callback(life.stop_on_signals, loop)
loop.add_callback(os.write, 1, b"ready\\n")
loop.start()
"""
"""The processes of the lab's server, without the lab."""
MOMENT = 60.0
"""Seconds in which all are gone, one that is still at its imports, too; without a bound they stay for good."""


def answers(port):
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def is_alive(process):
    """Whether a process runs. It may end between two questions, of which the second then raises."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_process_that_ends_between_two_questions_is_not_alive(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        asked = psutil.Process(process.pid)
        process.wait()
    monkeypatch.setattr(asked, "is_running", lambda: True)
    assert not is_alive(asked)


def all_gone(processes, port, seconds=MOMENT):
    """Whether all processes end, and nothing listens any more."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(map(is_alive, processes)) and not answers(port):
            return True
        time.sleep(0.05)
    return False


@contextmanager
def begun(command, **named):
    """A process in a group of its own, all of which is killed at the end; it hears SIGHUP, which nohup has ignored."""

    def hear():
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, preexec_fn=hear, **named) as process:  # noqa: PLW1509
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ended(kind, number, processes, *, group=False):
    """Whether a server's processes are gone after the first of them got a signal; its exit code, and what it said."""
    port = free_port()
    code = [sys.executable, "-c", SERVER.format(kind=kind), str(port), str(processes)]
    pipe = subprocess.PIPE
    with begun(code, stdout=pipe, stderr=subprocess.STDOUT) as server:
        for _ in range(processes):
            assert server.stdout.readline() == b"ready\n"
        seen = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        assert len(seen) == (processes + 1 if processes > 1 else 1) and answers(port)
        (os.killpg if group else os.kill)(server.pid, number)
        gone = all_gone(seen, port, MOMENT if kind == "life.Serving" else 1.0)
        if not gone:
            os.killpg(server.pid, signal.SIGKILL)
        said = server.stdout.read().decode()
    return gone, server.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="a server has one process there")
@for_each("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_processes_end_with_the_one_that_began_them(number):
    """The signal goes to that one alone, as systemd, Docker and kill send it."""
    gone, code, said = ended("life.Serving", number, 2)
    assert gone and said == ""
    assert code == (0 if number in (signal.SIGTERM, signal.SIGINT) else -number)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a server has one process there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_that_live_on_are_seen(number):
    """The planted fault: Tornado's own server."""
    gone, _, _ = ended("HTTPServer", number, 2)
    assert not gone


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_ends_all_in_order(processes):
    """A terminal sends it to each process of the group."""
    assert ended("life.Serving", signal.SIGINT, processes, group=True) == (True, 0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_a_process_that_failed_is_begun_again_and_ends_with_the_others():
    """Fails where the one that takes its place does not know of the pipe."""
    port = free_port()
    code = [sys.executable, "-c", SERVER.format(kind="life.Serving"), str(port), "2"]
    with begun(code, stdout=subprocess.PIPE) as server:
        assert [server.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        first = psutil.Process(server.pid)
        first.children()[0].kill()
        assert server.stdout.readline() == b"ready\n"
        seen = [first, *first.children()]
        server.kill()
        assert len(seen) == 3 and all_gone(seen, port)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("hangs", [True, False])
def test_a_process_that_cannot_end_in_order_is_ended(hangs):
    """Work of a thread for which Python would wait. Fault: nothing ends it."""
    code = "import threading, time; from sgmcmc_lab.app.server import life; life.PATIENCE = 0.2; life.begin()\n"
    code += (
        "threading.Thread(target=time.sleep, args=(60,)).start()\n" + "life.end_soon()\n" * hangs + "raise SystemExit"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as process:
        try:
            done = process.wait(MOMENT if hangs else 2) == 0
        except subprocess.TimeoutExpired:
            done = False
        process.kill()
    assert done == hangs


@pytest.mark.parametrize("fault", ["", "life.begin = life.begin.__wrapped__; "])
def test_what_is_to_be_removed_at_the_end_is(fault):
    """Fails where a server, asked to end, leaves its temporary folder. Fault: Panel runs the hooks twice."""
    code = f"import atexit, os, signal; from sgmcmc_lab.app.server import life; {fault}life.begin()\n"
    code += "atexit.register(print, 'removed'); life.begin(); os.kill(os.getpid(), signal.SIGTERM)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    assert (done.stdout == b"removed\n") == (not fault)


def test_a_server_that_cannot_start_says_so_in_its_exit_code():
    """Fails where what skips Python's own end says that all was well."""
    code = "import sys; from sgmcmc_lab.app.server import life; life.begin(); sys.exit(3)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize(
    ("number", "processes", "group"),
    [(signal.SIGKILL, 2, False), (signal.SIGINT, 2, True)],
    ids=["killed", "ctrl-c"],
)
def test_the_lab_ends_with_its_first_process(number, processes, group, tmp_path):
    """``panel serve app`` itself, with what it compiles by."""
    # Of the opening page's functions alone: a process compiles the others.
    kept = tmp_path / jit.cache_folder().name
    kept.mkdir()
    opening = [*(f for spec in DEFAULT.runs() for f in functions(spec)), *jit.readings()]
    jit.prepare(opening)
    for path in filter(None, map(jit.kept_in, opening)):
        shutil.copy(path, kept)
    with serve(tmp_path, "--num-procs", str(processes), environment={"SGMCMC_LAB_CACHE": str(tmp_path)}) as server:
        first = psutil.Process(server.process.pid)
        end = time.monotonic() + 200
        while "compiling" not in str(seen := [one.cmdline() for one in first.children(recursive=True)]):
            assert time.monotonic() < end, server.log
            time.sleep(0.2)
        seen = [first, *first.children(recursive=True)]
        (os.killpg if group else os.kill)(first.pid, number)
        assert all_gone(seen, server.port)
        assert "Traceback" not in server.log and not server.crashes()


SERVED = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-m', *sys.argv[2:], 'http.server', sys.argv[1], '--bind', '127.0.0.1'], stdin=subprocess.PIPE)\ntime.sleep(600)"
SWEPT = """
import signal, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from sgmcmc_lab.samplers.interrupts import begin_worker
begin = (begin_worker, ()) if sys.argv[2:] else (signal.signal, (signal.SIGINT, signal.SIG_IGN))
with ProcessPoolExecutor(2, get_context("spawn"), *begin) as pool:
    list(pool.map(time.sleep, [0.1, 0.1]))
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("watched", [True, False])
def test_a_server_that_a_bench_began_ends_with_it(watched, number):
    """Fault: the module itself."""
    port = free_port()
    with begun([sys.executable, "-c", SERVED, str(port), *["sgmcmc_lab.app.server.child"] * watched]) as parent:
        while not answers(port):
            assert parent.poll() is None
            time.sleep(0.1)
        seen = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
        parent.send_signal(number)
        assert all_gone(seen, port, MOMENT if watched else 1.0) == watched


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("watched", [True, False])
def test_the_processes_of_a_sweep_end_with_it(watched):
    """Fault: they look at no more than Ctrl-C."""
    command = [sys.executable, "-c", SWEPT, "0", *["x"] * watched]
    with begun(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"ready\n"
        seen = psutil.Process(parent.pid).children(recursive=True)
        assert len(seen) >= 2
        parent.kill()
        assert all_gone(seen, free_port(), MOMENT if watched else 1.0) == watched
