"""The one compile policy: signatures, the disk cache, and warm-up with progress.

Every compiled function of the engine has one of the explicit signatures below. Targets and
samplers reach each other as *function pointers* of these types, so that each function compiles
once, whatever it is combined with, and is found in the disk cache by the next process. Numba calls
first-class functions experimental; this is the only file that relies on them.

Division by zero gives an infinity, as in NumPy; the engine's watch for divergence sees it.

All chains of a lane advance in lockstep: a gradient is evaluated for every chain in one call. That
spreads the cost of the pointer call over the chains and lets the processor overlap their
arithmetic (on the 2-D quartic: 13 ns a chain-step with one chain, 10 ns with four, of which the
normals cost 7 ns). The arguments of a call are borrowed arrays: see :mod:`samplers.compile.borrowed_arrays`.

A compiled function is kept by what it uses: an edit compiles the functions that reach what was edited, and no other
one. :mod:`samplers.compile.content` says what that is, and :mod:`samplers.compile.cache` how they are kept.
"""

import atexit
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import platformdirs
from numba import types
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import content
from sgmcmc_lab.samplers.compile.borrowed_arrays import BorrowedArray
from sgmcmc_lab.samplers.compile.cache import CompiledFile, file_of
from sgmcmc_lab.samplers.stored_files import make_folder

float64 = types.float64
int64 = types.int64
vector = types.Array(float64, 1, "C")
matrix = types.Array(float64, 2, "C")
cube = types.Array(float64, 3, "C")
integers = types.Array(int64, 1, "C")
integer_matrix = types.Array(int64, 2, "C")
lent_vector, lent_matrix, lent_cube = (BorrowedArray(float64, ndim) for ndim in (1, 2, 3))
lent_integers = BorrowedArray(int64, 1)
rng_type = numba.typeof(Generator(SFC64(0)))

POTENTIAL = types.void(lent_matrix, lent_vector, lent_vector)
"""potential(theta (chains, dim), out (chains,), target_params): writes U = −log density + constant."""
GRADIENT = types.void(lent_matrix, lent_matrix, lent_vector)
"""gradient(theta (chains, dim), out (chains, dim), target_params): writes ∂U/∂θ."""
BATCH = types.void(lent_matrix, lent_integers, lent_matrix, lent_vector)
"""batch(theta (1, dim), data (S,), each (S, dim), target_params): writes ∂U/∂θ of each of these data by itself, as if
it stood for all: their mean estimates the gradient. If a target provides energies, ``each`` may be (S, dim + 1), and
its last column takes U."""
DRAW = types.void(rng_type, lent_matrix, lent_vector)
"""draw(rng, out (chains, dim), target_params): writes one exact i.i.d. draw for every chain."""
OBSERVE = types.void(lent_cube, int64, lent_cube)
"""observe(draws (steps, chains, dim), n, out (columns, chains, steps)): what is accumulated."""

PROJECT = types.void(lent_matrix, lent_matrix, lent_integers)
"""project(position (chains, dim), momentum (chains, ≥ dim), shape): the momentum's tangent part, in place."""
FLOW = types.void(lent_matrix, lent_matrix, float64, lent_integers)
"""flow(position (chains, dim), momentum (chains, ≥ dim), time, shape): both along their geodesics, in place."""


class State(NamedTuple):
    """The state that the next step needs, and nothing else. The kernels update the arrays in place."""

    position: Any
    """θ, (chains, dim)."""
    momentum: Any
    """The momentum r, (chains, dim), and behind it other auxiliary variables; zero for samplers without a momentum."""
    data: Any
    """The categories of the data (items,); minibatches without replacement permute it."""
    memory: Any
    """The memory of the gradient's estimator for each chain, (chains, …): an anchor, a table of gradients."""


class CompiledTarget(NamedTuple):
    """The target as the kernels see it."""

    potential: Any
    gradient: Any
    batch: Any
    draw: Any
    params: Any
    """The target's packed parameters."""
    project: Any
    flow: Any
    shape: Any
    """The manifold's dimension, then whatever else its functions need to know."""


class Noise(NamedTuple):
    """How noisy a gradient is, and what is known of that."""

    variance: float = 0.0
    """V of the Gaussian noise N(0, V) added to every component of the gradient."""
    correction: float = 0.0
    """B̂, the estimate of V that is subtracted from the injected noise, where it is a number."""
    sample_size: int = 0
    """Draws that B̂ is estimated from; 0 where it is given."""
    batch_size: int = 0
    """Items in a minibatch; 0 where there is none."""
    replacement: bool = True
    estimated: bool = False
    """Whether B̂ is the covariance of the minibatch's own gradients."""


class Source(NamedTuple):
    """The gradient's estimator as the kernels see it: :class:`Noise`, and the gradient of a minibatch."""

    variance: Any
    correction: Any
    sample_size: Any
    batch_size: Any
    replacement: Any
    estimated: Any
    estimate: Any
    params: Any


class Info(NamedTuple):
    """Numbers for diagnostics alone, which the next step does not need."""

    gradient: Any
    """The gradient that the last step used, with its noise, (chains, dim)."""
    counts: Any
    """Running sums over chains and steps: [accepted proposals, clipped injected variances, ‖v‖², ξ, gradients,
    turned trajectories, divergent transitions]; ‖v‖² and ξ of samplers with a velocity, gradients, or data, of those
    whose steps differ in them, the trajectories that turned back at an implicit step without a solution, and those
    whose energy error is too large. Then the number of the next step, at the beginning of a call, and rates above
    their bound. Behind these, where a run looks at them, the places of the last divergent transitions: :data:`N_MARKS`
    times step · chains + chain, and as many θ after them. With a third array here the generic recipe took 50 ns a step
    longer."""


ACCEPTED, CLIPPED, SQUARE, THERMOSTAT, GRADIENTS, TURNED, DIVERGED, CLOCK, ABOVE, N_COUNTS = range(10)
N_MARKS = 512
"""So many divergent transitions keep their place."""

state_type = types.NamedTuple([matrix, matrix, integers, matrix], State)
model_type = types.NamedTuple(
    [
        types.FunctionType(POTENTIAL),
        types.FunctionType(GRADIENT),
        types.FunctionType(BATCH),
        types.FunctionType(DRAW),
        vector,
        types.FunctionType(PROJECT),
        types.FunctionType(FLOW),
        integers,
    ],
    CompiledTarget,
)
_noise_fields = [float64, float64, int64, int64, types.boolean, types.boolean]
noise_type = types.NamedTuple(_noise_fields, Noise)
info_type = types.NamedTuple([matrix, vector], Info)

ESTIMATE = types.void(rng_type, matrix, matrix, matrix, model_type, integers, vector, vector)
"""estimate(rng, theta (1, dim), out (1, dim), each (S, dim), model, data, params, memory): writes the gradient of a
minibatch, and those of its data, whose mean it is, as :data:`BATCH` does. ``memory`` is the chain's own."""
source_type = types.NamedTuple([*_noise_fields, types.FunctionType(ESTIMATE), vector], Source)

KERNEL = types.void(rng_type, state_type, model_type, source_type, vector, cube, int64, info_type)
"""kernel(rng, state, model, source, params, out (steps, chains, dim), n, info): n steps of all chains,
each written to ``out``."""

START = types.void(rng_type, matrix, matrix, model_type, vector)
"""start(rng, position (chains, dim), auxiliary (chains, …), model, params): writes, in place, the initial values of θ
and the auxiliary variables that are random or depend on θ; they come with the same values for every chain."""


def cache_folder() -> Path:
    """The folder of compiled functions: SGMCMC_LAB_CACHE, or the user's cache folder."""
    base = os.environ.get("SGMCMC_LAB_CACHE") or platformdirs.user_cache_dir("sgmcmc-lab")
    return Path(base) / "functions"


def _folder_to_write(folder: Path) -> Path | None:
    """The folder, where it can be written to; else one that ends with this process, with what is kept in it.

    None where nothing can be written: all is compiled in each process.
    """
    try:
        make_folder(folder)
        tempfile.TemporaryFile(dir=folder).close()
        return folder
    except OSError:
        pass
    try:
        own = Path(tempfile.mkdtemp(prefix="sgmcmc-lab-"))
        maker = os.getpid()
        # Not by a process that was forked from this one.
        atexit.register(lambda: shutil.rmtree(own, ignore_errors=True) if os.getpid() == maker else None)
        if folder.is_dir():
            # Unreadable files are left out.
            with suppress(OSError):
                shutil.copytree(folder, own / folder.name)
        (own / folder.name).mkdir(exist_ok=True)
        # A copy of a folder that nobody may write to is another one.
        (own / folder.name).chmod(0o700)
        return own / folder.name
    except OSError:
        return None


FOLDER = _folder_to_write(cache_folder())
"""The folder of this process's compiled functions; None where it cannot."""
_COMPILING = threading.Lock()
_COMPILED: dict[Any, tuple[str, Any]] = {}
_READY: set[Any] = set()
_READINGS: set[Any] = set()
_OTHERS: list[Callable[[], bool]] = []
"""Whether the other processes live with which this one shares the work."""
LOOK_SECONDS = 0.1
"""How often it is looked for a function that another process compiles."""


def _declare(function: Callable, signature: Any, what: str, nogil: bool = False) -> Any:
    dispatcher = numba.njit(nogil=nogil, error_model="numpy")(function)
    _COMPILED[dispatcher] = (f"{what} {function.__module__.split('.')[-1]}", signature)
    return dispatcher


def potential(function: Callable) -> Any:
    """Declare a compiled function of type :data:`POTENTIAL`."""
    return _declare(function, POTENTIAL, "potential of")


def gradient(function: Callable) -> Any:
    """Declare a compiled function of type :data:`GRADIENT`."""
    return _declare(function, GRADIENT, "gradient of")


def batch(function: Callable) -> Any:
    """Declare a compiled function of type :data:`BATCH`."""
    return _declare(function, BATCH, "minibatches of")


def estimate(function: Callable) -> Any:
    """Declare a compiled function of type :data:`ESTIMATE`."""
    return _declare(function, ESTIMATE, "gradient by")


def draw(function: Callable) -> Any:
    """Declare a compiled function of type :data:`DRAW`."""
    return _declare(function, DRAW, "exact draws of")


def observe(function: Callable) -> Any:
    """Declare a compiled function of type :data:`OBSERVE`."""
    return _declare(function, OBSERVE, "observables of")


def project(function: Callable) -> Any:
    """Declare a compiled function of type :data:`PROJECT`."""
    return _declare(function, PROJECT, "projection of")


def flow(function: Callable) -> Any:
    """Declare a compiled function of type :data:`FLOW`."""
    return _declare(function, FLOW, "geodesics of")


def kernel(function: Callable) -> Any:
    """Declare a compiled function of type :data:`KERNEL`."""
    return _declare(function, KERNEL, "sampler")


def start(function: Callable) -> Any:
    """Declare a compiled function of type :data:`START`."""
    return _declare(function, START, "start of")


def loop(signature: Any) -> Callable[[Callable], Any]:
    """Declare the engine's own loop, with its signature; it runs without the interpreter's lock."""
    return lambda function: _declare(function, signature, "the main loop of the", nogil=True)


def reading(signature: Any) -> Callable[[Callable], Any]:
    """Declare a function that reads running statistics or draws, with its signature: numbers and whole arrays in C
    order in, a number or arrays that are arguments out.

    It makes no array and calls nothing but what C's mathematical library has, so that whoever has the arrays can call
    it without Python. It keeps the interpreter's lock: a release would cost more time than most of them take.
    """

    def declare(function: Callable) -> Any:
        declared = _declare(function, signature, "the readings of")
        _READINGS.add(declared)
        return declared

    return declare


def helper(function: Callable) -> Any:
    """A helper of compiled functions; it is compiled, and cached, as a part of each of its callers."""
    return numba.njit(error_model="numpy")(function)


def inlined(function: Callable) -> Any:
    """A helper that is written into its callers: to pass a generator to a call counts references, which costs 10 ns."""
    return numba.njit(error_model="numpy", inline="always")(function)


def reduction(function: Callable) -> Any:
    """A helper whose sums may be reordered, so that the compiler can use vector instructions.

    The draws never pass through one, and so stay the same to the bit.
    """
    return numba.njit(fastmath={"reassoc", "contract"}, error_model="numpy")(function)


def keep_plain(owner: type, *names: str) -> None:
    """Keep compiled functions among a class's attributes from turning into methods of its instances."""
    for name in names:
        if name in vars(owner) and vars(owner)[name] in _COMPILED:
            setattr(owner, name, staticmethod(vars(owner)[name]))


def declared() -> list[Any]:
    """Every function that this process has declared, in order of declaration."""
    return list(_COMPILED)


def readings() -> list[Any]:
    """The declared functions that read statistics, which any page may call."""
    return [f for f in _COMPILED if f in _READINGS]


def is_ready(functions: Iterable[Any]) -> bool:
    """Whether all of these functions are compiled or loaded in this process."""
    return all(function in _READY for function in functions)


def name_of(function: Any) -> str:
    """The name of a declared function, which no other one has."""
    return f"{function.py_func.__module__}.{function.py_func.__qualname__}"


def signature_of(function: Any) -> Any:
    """The signature of a declared function."""
    return _COMPILED[function][1]


def digest_of(function: Any) -> str | None:
    """The digest of a declared function's content; None where that is unknown."""
    try:
        return content.digest_of(function, signature_of(function))
    except content.UnknownContentError:
        return None


def kept_in(function: Any) -> Path | None:
    """The cache file of a declared function; None where it is kept nowhere."""
    found = _file(function)
    return None if found is None else found.path


def missing(functions: Iterable[Any] | None = None) -> list[Any]:
    """The functions missing from the cache, among these or among all that are declared and not ready."""
    if functions is None:
        functions = [f for f in _COMPILED if f not in _READY]
    told: dict[Any, Any] = {}
    files = ((f, _file(f, told)) for f in functions)
    return [f for f, file in files if file is not None and not file.is_there()]


def prepare(functions: Iterable[Any], progress: Callable[[int, int, str], None] | None = None) -> None:
    """Compile these functions or load them from the cache.

    ``progress(done, total, what)`` is called before each one and once at the end; ``what`` is to be compiled, and empty
    where it is only loaded. Without it a line on standard error says what is being compiled, where that is a terminal.
    """
    waiting = [f for f in dict.fromkeys(functions) if f not in _READY]
    if not waiting and progress is None:
        return
    shown = progress is None and sys.stderr.isatty()
    cold = [f for f in waiting if not _is_kept(f)] if shown else []
    for done, function in enumerate(waiting):
        what, signature = _COMPILED[function]
        file = _file(function)
        kept = file is not None and file.is_there()
        if progress is not None:
            progress(done, len(waiting), "" if kept else what)
        elif function in cold:
            _say(f"compiling {cold.index(function) + 1} of {len(cold)}: {what}")
        if not kept:
            _wait_for_others(function)
        # The server's warm-up and its first pages want the same functions at the same time.
        with _COMPILING:
            if function not in _READY:
                if not kept:
                    # Of what it reaches now, for that is what is compiled.
                    file = _file(function)
                # A function that calls it may have compiled it already.
                if file is None or signature.args in function.overloads or not file.load():
                    function.compile(signature)
                    if file is not None:
                        file.save()
                # A call with another target's functions would otherwise compile again for their own types.
                function.disable_compile()
                _keep_addresses(function, signature)
                _READY.add(function)
    if progress is not None:
        progress(len(waiting), len(waiting), "")
    elif cold:
        _say("")


@contextmanager
def shared(live: Callable[[], bool]) -> Iterator[None]:
    """A time in which others compile, too, as long as they ``live``: this process leaves to them what they began."""
    _OTHERS.append(live)
    try:
        yield
    finally:
        _OTHERS.remove(live)


def claim(function: Any) -> bool:
    """Whether this process is the first of those that share their work to begin with a declared function."""
    file = _file(function)
    return file is not None and file.claim()


def _wait_for_others(function: Any) -> None:
    """Wait while another process compiles a function that it began."""
    if _OTHERS and not _is_kept(function) and not claim(function):
        while function not in _READY and any(live() for live in list(_OTHERS)) and not _is_kept(function):
            time.sleep(LOOK_SECONDS)


def _keep_addresses(function: Any, signature: Any) -> None:
    """Let Numba find where the function is without a search.

    It asks twice for each function that is handed to another, each time by its signature and in the linker. In a call
    of the engine's loop, which is handed nine, the search took two thirds of the time: 350 µs, where 100 are left.
    """
    # A Numba that goes about it in another way is left to do so.
    with suppress(Exception):
        found = function.get_compile_result(signature)
        found.library.get_pointer_to_function = cache(found.library.get_pointer_to_function)
        function.get_compile_result = lambda signature: found


def _file(function: Any, told: dict[Any, Any] | None = None) -> CompiledFile | None:
    """The file of a declared function; it is asked for anew each time, for what the function reaches may change."""
    return file_of(FOLDER, function, _COMPILED[function][1], told) if FOLDER else None


def _is_kept(function: Any) -> bool:
    """Whether the disk cache has the function, whole."""
    file = _file(function)
    return file is not None and file.is_there()


def _say(text: str) -> None:
    """Write over the line of the terminal that standard error is on."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
