"""The formulas on the cards of models and of their methods are those that run: read from their LaTeX and evaluated
beside the steps in plain Python, which the compiled steps equal in another test.

A step runs and its random numbers are recorded; the formula then takes the same numbers in the same order, and each of
its distributions must have the parameters of the draw that the step made.
"""

import copy
from contextlib import ExitStack
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from numpy.random import SFC64, Generator
from scipy import special, stats

from sgmcmc_lab.samplers import textbook as samplers_textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.clusters import sphere_textbook
from sgmcmc_lab.samplers.models.clusters import textbook as cluster_steps
from sgmcmc_lab.samplers.models.factors import gibbs as factors_gibbs
from sgmcmc_lab.samplers.models.network import gibbs as network_gibbs
from sgmcmc_lab.samplers.models.sparse import textbook as sparse_steps
from sgmcmc_lab.samplers.models.spherical import textbook as spherical_steps
from sgmcmc_lab.samplers.models.topics import textbook as topic_steps
from sgmcmc_lab.samplers.models.topics.collapsed_gibbs import log_likelihood
from tests.helpers.cases import for_each
from tests.helpers.checks_methods import SMALL, small_model
from tests.helpers.latex import UnreadError, execute, read, split, statements, symbols

GAMMA, NORMAL, BETA, POISSON, DIRICHLET, VMF = (
    rf"\mathrm{{{name}}}" for name in ("Gamma", "N", "B", "Poisson", "Dir", "vMF")
)


class Recorder:
    """A random generator that keeps the name, the parameters and the value of each draw."""

    def __init__(self, seed=7):
        self.rng, self.log = Generator(SFC64(seed)), []

    def __getattr__(self, name):
        def draw(*given, **options):
            value = getattr(self.rng, name)(*given, **options)
            self.log.append((name, given, value))
            return value

        return draw

    def of(self, name):
        """The first parameter, if any, and the value of each draw of this name."""
        return [(given[0] if given else None, value) for one, given, value in self.log if one == name]


class Replay:
    """The draws of a step once more: what a formula's distributions are, and how far their parameters are from those
    that were drawn with.
    """

    def __init__(self, log):
        self.log, self.worst = iter(log), 0.0

    def compare(self, found, wanted):
        """The error grows to that of a number or an array, over its size."""
        found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
        assert np.isfinite(found).all() and np.isfinite(wanted).all() and found.shape == wanted.shape
        size = max(np.abs(wanted).max(initial=0.0), 1e-12)
        self.worst = max(self.worst, float(np.abs(found - wanted).max(initial=0.0) / size))

    def draw(self, name, *given):
        """The next value that was drawn."""
        one, parameters, value = next(self.log)
        assert one == name
        for found, wanted in zip(given, parameters, strict=False):
            self.compare(found, wanted)
        return value

    @property
    def symbols(self):
        """The symbols of random numbers."""
        return {
            r"\xi": lambda: self.draw("standard_normal"),
            GAMMA: lambda shape, rate: self.draw("standard_gamma", shape) / rate,
            POISSON: lambda rate: self.draw("poisson", rate),
        }


def ran(key, steps=2, patches=(), prepared=lambda state: None, **values):
    """A step after some others, with its state before and after it, and its random numbers."""
    cls = METHODS[key]
    jit.prepare(cls.compiled)
    model = small_model(cls)
    method = cls(**{**cls.tried_at[0], **values})
    rng = Recorder()
    state = method.start(model, rng.rng)
    prepared(state)
    for _ in range(steps):
        method.textbook_step(rng.rng, model, state)
    before = copy.deepcopy(state)
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one(rng, state))
        method.textbook_step(rng, model, state)
    return SimpleNamespace(model=model, method=method, before=before, state=state, rng=rng)


def watched(module, name, calls, quiet=False):
    """A patch of a function: its parameters, the copied state at the call, its value and how many draws were before.

    ``quiet``: draws in it are not recorded.
    """

    def of(rng, state):
        original = getattr(module, name)

        def call(*given, **options):
            at, was = len(rng.log), copy.deepcopy(state)
            kept = copy.deepcopy([each for each in given if each is not rng])
            value = original(*(rng.rng if quiet and each is rng else each for each in given), **options)
            calls.append(SimpleNamespace(given=kept, state=was, value=copy.deepcopy(value), at=at, end=len(rng.log)))
            return value

        return patch.object(module, name, call)

    return of


def assignments(tex, words=()):
    """The statements that can be read: the left side, and the value. ``words`` replaces what no reader knows."""
    for old, new in words:
        tex = tex.replace(old, new)
    out = []
    for statement in statements(tex):
        try:
            left, _, right = split(statement)
            out.append(("".join(left), read(right)))
        except UnreadError:
            continue
    return out


def the(parts, left):
    """The value of a statement that begins so; there is one."""
    (value,) = [value for name, value in parts if name.startswith(left)]
    return value


def settings(at):
    """The symbols of the model's and the method's parameters."""
    return {**symbols(at.model), **symbols(at.method)}


def shares(weights):
    """Weights whose sum is 1: a formula with ∝ gives them up to a factor."""
    return np.asarray(weights) / np.sum(weights)


# Topics


def stochastic_topics(key, tex):
    """The step of a method of minibatches: each θ_kw with its own random numbers."""

    def prepared(state):  # away from 0, where a reflection changes the sign of r, too
        state.weights[:, :3] += 1.0
        state.totals[:3] = state.weights[:, :3].sum(axis=0)

    at = ran(key, steps=1, prepared=prepared, decay_power=0.0)
    theta = at.before.weights[:, :3]
    draws = [one for one in at.rng.log if one[0] not in ("choice", "random")]
    replay = Replay(draws)
    counts, momentum = at.state.extra["counts"], at.before.extra["momentum"]
    of_root = key == "lda_sgrhmc"  # it moves s = √θ
    step = assignments(tex, [(r"\sqrt{\theta_{kw}}", "s_{kw}"), (r"\theta_{kw}", "s_{kw}^2")] * of_root)
    for w, k in np.ndindex(*theta.shape):
        env = settings(at) | replay.symbols | {
            "D": at.model.training.n_documents, "B_kw": counts[w, k], r"B_k\cdot": counts[:, k].sum(),
            r"\theta_{kw}": theta[w, k], r"\theta_k\cdot": theta[:, k].sum(),
            r"\phi_kw": theta[w, k] / theta[:, k].sum(), "s_{kw}": np.sqrt(theta[w, k]),
        }  # fmt: skip
        if len(momentum):
            env["r_{kw}"] = momentum[w, k]
        execute([([left], value) for left, value in step], env)
        if of_root:
            env[r"\theta_{kw}"] = env["s_{kw}"] ** 2
        replay.compare(env[r"\theta_{kw}"], at.state.weights[w, k])
        if len(momentum):
            replay.compare(abs(env["r_{kw}"]), abs(at.state.extra["momentum"][w, k]))
    return replay.worst


def topic_of_a_word(key, tex):
    """The probabilities of each word's topic; of a minibatch also the counts that φ is drawn with."""
    calls, collapsed = [], key == "collapsed_gibbs"
    at = ran(key, patches=[watched(samplers_textbook if collapsed else topic_steps, "pick", calls)])
    parts = assignments(tex, [(r"\quad\text{for } m \text{ documents } d", "")])
    replay, data = Replay(at.rng.log), at.model.training
    words = [(d, i) for d in at.state.batch for i in range(data.offsets[d], data.offsets[d + 1])]
    phi = at.before.weights[:, :3] / at.before.totals[:3]
    for (d, i), call in zip(words, calls, strict=True):
        w, was = data.words[i], call.state
        found = []
        for k in range(3):
            env = settings(at) | {
                "n_dk": was.counts[d, k], "n_kw": was.weights[w, k], "n_k": was.totals[k], r"\phi_kw": phi[w, k],
                "V": at.model.n_words,
            }  # fmt: skip
            found.append(the(parts, "p(z")(env))
        replay.compare(shares(found), shares(call.given[0]))
    if not collapsed:
        counts = at.state.extra["counts"][:, :3]
        shapes = np.array([shape for shape, _ in at.rng.of("standard_gamma")]).reshape(counts.shape)
        for k in range(3):
            found = the(parts, r"\phi_k")({**settings(at), "N_k": counts[:, k], DIRICHLET: lambda a: a})
            replay.compare(found, shapes[:, k])
    return replay.worst


# Clusters of documents


def stochastic_mixture(key, tex):
    """The move of each word's x_kw."""
    moves, cls = [], METHODS[key]
    original = cls.textbook_move

    def patched(rng, state):
        def move(self, rng, x, shape, pull, sticks):
            begin = len(rng.log) if isinstance(rng, Recorder) else 0
            moves.append((x, original(self, rng, x, shape, pull, sticks), rng.log[begin:], sticks))
            return moves[-1][1]

        return patch.object(cls, "textbook_move", move)

    at = ran(key, patches=[patched])
    (batch,) = [value for name, _, value in at.rng.log if name == "choice"]
    data, z = at.model.training, at.state.z
    kept = [k for k in range(z.max() + 1) if (z == k).any()]
    of_words = iter([move for move in moves if not move[3]])
    of_words = np.array([[next(of_words) for _ in kept] for _ in range(at.model.n_words)], dtype=object)
    counts = np.zeros((at.model.n_words, len(z)))
    for i in batch:
        np.add.at(counts[:, z[i]], data.words[data.offsets[i] : data.offsets[i + 1]], 1)
    worst, parts = 0.0, assignments(tex)
    for w, (place, k) in ((w, one) for w in range(at.model.n_words) for one in enumerate(kept)):
        x, moved, log, _ = of_words[w, place]
        total = of_words[:, place, 0].sum()
        replay = Replay(log)
        env = settings(at) | replay.symbols | {
            "N": len(z), "n": len(batch), "B_kw": counts[w, k], r"B_k\cdot": counts[:, k].sum(), r"x_k\cdot": total,
            "x_{kw}": x, r"\theta_kw": x / total,
        }  # fmt: skip
        execute([([left], value) for left, value in parts if not left.startswith(r"\theta")], env)
        replay.compare(env["x_{kw}"], moved)
        worst = max(worst, replay.worst)
    return worst


def mixture_gibbs(key, tex):
    """The probabilities of each document's cluster, given sticks and slices, and the parameters of both."""
    calls = []
    at = ran(key, steps=1, patches=[watched(np, "searchsorted", calls)])
    parts = assignments(tex, [(r"\mathcal U", r"\mathrm{U}")])
    data, z, replay, n = at.model.training, at.before.z, Replay(()), len(at.before.z)
    bags = [data.words[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    log = at.rng.log[1 : calls[0].at]  # after α: the slices, then new sticks with their words
    size, used = 2 + at.model.n_words, z.max() + 1
    fresh = np.array([value for _, _, value in log[n:-1]]).reshape(-1, size)
    gammas = np.hstack([at.before.gammas[:, :used], fresh[:, :2].T])
    theta = np.hstack([at.before.theta[:, :used], fresh[:, 2:].T])
    theta = theta / theta.sum(axis=0)

    def lengths(gammas):
        v, out = gammas[0] / gammas.sum(axis=0), []
        for k in range(1, len(v) + 1):
            over = {"l<k": lambda env: [{"l": m} for m in range(1, env["k"])]}
            out.append(the(parts, "w_k")({"v": v, "k": k, "v_k": v[k - 1], "over": over}))
        return np.array(out)

    w = lengths(gammas)
    for i, call in enumerate(calls):
        env = {"z_i": z[i] + 1, "w": w, r"\mathrm{U}": lambda a, b, i=i: a + (b - a) * log[i][2]}
        env["u_i"] = the(parts, "u_i")(env)
        found = []
        for k in range(len(w)):
            terms = [{r"\theta_kx_{ij}": theta[word, k]} for word in bags[i]]
            found.append(the(parts, "p(z")({**env, "w_k": w[k], "over": {"j": lambda _, terms=terms: terms}}))
        replay.compare(shares(found), shares(np.diff(call.given[0], prepend=0.0)))
    z = at.state.z
    sizes, alpha = np.bincount(z), at.state.alpha[0]
    shapes = [shape for shape, _ in at.rng.of("standard_gamma")][-len(sizes) * size :]
    of_words, of_sticks = np.split(np.array(shapes).reshape(size, -1), [at.model.n_words])
    for k in range(len(sizes)):
        counts = np.bincount(
            np.concatenate([bags[0][:0], *(bags[i] for i in np.flatnonzero(z == k))]), minlength=size - 2
        )
        over = {"l>k": lambda env: [{"l": m} for m in range(env["k"] + 1, len(sizes) + 1)]}
        env = settings(at) | {
            r"N_k\cdot": counts, "N": sizes, "k": k + 1, "over": over, r"\alpha": alpha, DIRICHLET: lambda a: a,
            r"\mathrm{Beta}": lambda a, b: [a, b],
        }  # fmt: skip
        replay.compare(the(parts, r"\theta_k")(env), of_words[:, k])
        replay.compare(the(parts, "v_k")(env), of_sticks[:, k])
    replay.compare(lengths(at.state.gammas[:, : len(sizes)]), at.state.weights[: len(sizes)])
    return replay.worst


# Sparse regression


def sparse(key, tex):
    """The latent variables' means, w against its mean and covariance, and the parameters of the scales."""
    latent, scales = [], []
    patches = [watched(sparse_steps, "above_zero", latent), watched(sparse_steps, "inverse_gaussian", scales)]
    at = ran(key, steps=1, patches=patches, **({"cost_ratio": 1e4} if key == "sparse_minibatch" else {}))
    x, w, state, replay = at.model.x, at.state.w, at.state, Replay(())
    parts = assignments(
        tex, [(r"\text{ on } y_i\text{'s side of } 0", ""), (r"\quad\text{for } m \text{ data } i", "")]
    )
    env = settings(at) | {
        "X": x, "N": len(x), "z": state.z, r"\sigma": 1.0, r"D_\tau": np.diag(1 / at.before.precisions), "R": 0.0,
        r"\mathrm{InverseGaussian}": lambda mean, shape: [mean, shape], "normals": lambda: 0.0,
        "A": x.T @ x + np.diag(at.before.precisions),  # of cards that do not say it
    }  # fmt: skip
    if key == "sparse_blocked":
        env["z"] = z = np.array([call.value for call in latent])
        env["R"] = the(parts, "R")(env)
        (half, drawn), *_ = at.rng.of("standard_gamma")
        shape, rate = the(parts, "g^2")({**env, GAMMA: lambda a, b: (a, b)})
        replay.compare(shape, half)
        replay.compare(the(parts, "z")({**env, "g": np.sqrt(drawn / rate), "z": z}), state.z)
        env["z"] = state.z
    else:
        if key == "sparse_gibbs":
            env["A"] = the(parts, "A")(env)
        chosen = state.order[: len(latent)] if key == "sparse_minibatch" else range(len(x))
        for i, call in zip(chosen, latent, strict=True):
            replay.compare(the(parts, "z_i")({**env, "x_i": x[i], "w": at.before.w}), call.given[0])
    noise = np.array([value for _, _, value in at.rng.log[scales[0].at - len(w) : scales[0].at]])
    standardised(replay, the(parts, "w"), env, w, noise)
    if key == "sparse_gibbs":
        for j, call in enumerate(scales):
            replay.compare(the(parts, "1/")({**env, "w_j": w[j]}), call.given)
    return replay.worst


def standardised(replay, value, env, drawn, noise):
    """A normal draw by its formula: its standardised square is that of the normal numbers that it was made from."""
    found = []
    mean = value({**env, "root": lambda covariance: found.append(covariance) or 0.0})
    apart = drawn - mean
    replay.compare(apart @ np.linalg.solve(np.atleast_2d(found[0]), apart), noise @ noise)


# Factors


class Times(float):
    """A uniform number that remembers what it is multiplied by."""

    def __mul__(self, other):
        self.by = other
        return float(self) * other


def factors_gibbs_step(key, tex):
    """All factors against their mean and covariance; the odds of each loading, and the loading."""
    seen, calls = [], []

    def alone_stay(rng, state):
        return patch.object(factors_gibbs, "textbook_alone", lambda rng, y, g, x, *rest: (g, x))

    def marked(rng, state):
        random = rng.rng.random
        return patch.object(rng, "random", lambda: seen.append(Times(random())) or seen[-1], create=True)

    at = ran(key, patches=[watched(factors_gibbs, "textbook_factors", calls), alone_stay, marked])
    parts = assignments(tex, [(r"\text{ of its own, or not}", "")])
    y, precision = at.model.y.T, at.before.scales[0]
    (g, x), replay = calls[0].value, Replay(())
    env = {r"\sigma": precision**-0.5, r"\lambda": at.before.scales[1], "G": g, "I": np.eye(len(x))}
    env |= {"D": len(y), r"\alpha": at.before.scales[2], "A": the(parts, "A")(env)}
    log = at.rng.log
    noise = np.array([value for _, _, value in log[: calls[0].end]])
    whole = 0.0
    for n in range(y.shape[1]):
        found = []
        mean = the(parts, "x_n")({**env, "y_n": y[:, n], "root": lambda c, found=found: found.append(c) or 0.0})
        whole += (x[:, n] - mean) @ np.linalg.solve(found[0], x[:, n] - mean)
    replay.compare(whole, (noise**2).sum())
    draws, uniform = iter([one for one in log[calls[0].end :] if one[0] in ("standard_normal", "poisson")]), iter(seen)
    for d in range(len(y)):
        for k in range(len(x)):
            m = np.count_nonzero(g[:, k]) - (g[d, k] != 0)
            if m == 0:
                continue
            g[d, k] = 0.0
            one = env | {r"m_-d,k": m, "x_k": x[k], "e_d": y[d] - g[d] @ x}
            one |= {"s": the(parts, "s")(one)}
            one |= {"b": the(parts, "b")(one), "normals": lambda: next(draws)[2]}
            u = next(uniform)
            replay.compare(the(parts, r"\frac{P")(one), 1 / (u.by - 1))
            if u * u.by < 1:
                g[d, k] = the(parts, "g_")(one)
        replay.compare(the(parts, r"\kappa_d")({**env, POISSON: lambda rate: rate}), next(draws)[1][0])
    replay.compare(g, at.state.loadings[:, : len(x)])
    return replay.worst


# Clusters of points

CLUSTER_WORDS = [
    (r"p(x_i \mid \{x_j : z_j = k, j \ne i\})", "P"), (r"\alpha\; p(x_i)", r"\alpha P_0"), ("C(", r"\mathrm{C}("),
    (r"\mathcal N(x_i", r"\mathrm{N}(x_i"), (r"\quad\text{for } m \text{ points } i", ""), (r"\mathcal U", r"\mathrm{U}"),
    (r"(w_1,\ldots,w_K,\text{rest})", "W"), (r"\mu_k \sim", r"V \sim"), (r"\mu_k &\sim", r"V \sim"), ("p(z_i = k", "p("),
    (r"p(z_i = \text{new}", "q("), (r"\mid \cdot)", ")"), (r"\mid z_{-i}, x)", ")"),
]  # fmt: skip


def clusters(key, tex):
    """The weights of each point's clusters; on a sphere also R_k, and of sticks the Dirichlet's parameters."""
    picks, draws, results = [], [], []
    sphere, slices = key.startswith("sphere"), key.endswith("slice")
    patches = [watched(cluster_steps, "pick", picks), watched(cluster_steps, "draw", draws, quiet=True)]
    patches += [
        watched(cluster_steps, "draw_concentration", [], quiet=True),
        watched(sphere_textbook, "resultant", results),
    ]
    at = ran(key, steps=1, patches=patches, split_merge=0, start_clusters=4)
    model, parts, replay = at.model, assignments(tex, CLUSTER_WORDS), Replay(())
    minibatch = [value for name, _, value in at.rng.log if name == "choice"]
    chosen = minibatch[0] if minibatch else range(len(model.x))
    env = settings(at) | {
        r"\alpha": at.before.alpha[0], "m": getattr(model, "prior_mean", 0.0), DIRICHLET: lambda *a: np.hstack(a),
        r"\mathrm{C}": lambda r: np.exp(sphere_textbook.log_c(model.x.shape[1], r)), r"\mathrm{U}": lambda a, b: (a, b),
        VMF: lambda *given: cluster_steps.density(model, given[0], given[1]) * (given[2] == model.kappa)
        if len(given) == 3 else given[0] * given[1],
        NORMAL: lambda x, mean, covariance: stats.multivariate_normal(mean, covariance).pdf(x),
    }  # fmt: skip

    def resultant(points):
        terms = [{"x_j": x, "x_i": x} for x in points]
        over = {key: lambda _: terms for key in (r"j\nei:z_j=k", "i:z_i=k")}
        return the(parts, "R_k")({**env, "over": over})

    uniform = [value for _, value in at.rng.of("random")][1:]  # after that of the proposals
    for i, call in zip(chosen, picks, strict=True):
        weights, z = call.given[0], call.state.z
        x, others = model.x[i], np.arange(len(z)) != i
        found = {}
        for k in weights:
            mine = model.x[others & (z == k)]
            one = env | {"x_i": x, "N_k,-i": len(mine)}
            if slices:
                one |= {"w_k": at.state.extra["weights"][k], "w_z_i": at.state.extra["weights"][at.before.z[i]]}
                one["u_i"] = the(parts, "u_i")(one)[1] * uniform[i]
                cluster = at.state.drawn[k]
            else:
                one |= {"P": 1.0, "P_0": cluster_steps.next_density(model, model.x[:0], x)}
                one["P"] = cluster_steps.next_density(model, mine, x)
                cluster = call.state.drawn[k]
            if sphere:
                one |= {r"\mu_k": cluster}
            elif len(cluster) == 5 and cluster.any():
                factor = np.array([[cluster[2], 0.0], [cluster[3], cluster[4]]])
                one |= {r"\mu_k": cluster[:2], r"\Sigma_k": np.linalg.inv(factor @ factor.T)}
            if sphere and key == "sphere_collapsed":
                one["R_k"] = resultant(mine)
            found[k] = the(parts, "p()" if len(mine) or slices else "q()")(one)
        replay.compare(shares(list(found.values())), shares(list(weights.values())))
    if sphere and key != "sphere_collapsed":
        for call in results:
            replay.compare(the(parts, "V")({**env, "R_k": resultant(call.given[1])}), call.value)
    if slices:
        counts = np.bincount(at.before.z)
        counts = counts[counts > 0]
        shapes = [shape for shape, _ in at.rng.of("standard_gamma")]
        given = {r"\ldots": counts[1:-1], "N_1": counts[0], "N_K": counts[-1], r"\alpha": at.state.alpha[0]}
        replay.compare(the(parts, "W")(env | given), [*shapes[1:], shapes[0]])
    return replay.worst


# Networks


def network(key, tex):
    """Every unknown of the Gibbs sampler's step: the rates of hidden counts, and the gammas of w and r."""
    calls = []
    at = ran(key, patches=[watched(network_gibbs, "textbook_counts", calls, quiet=True)])
    parts = assignments(tex)
    n, kk = at.before.w.shape
    w, r, model, replay = at.before.w.copy(), at.before.r.copy(), at.model, Replay(())
    held = np.eye(n, dtype=bool)
    held[tuple(model.held.T)] = held[tuple(model.held.T[::-1])] = True
    mine = np.zeros((n, kk))
    env = settings(at) | {"K": kk, GAMMA: lambda a, b: np.array([a, b]), "r": r, "w": w, r"\propto": 1.0}
    env |= {POISSON + "_+": lambda rate: rate, r"\mathrm{Mult}": lambda count, weight: weight}
    for (i, j), call in zip(model.edges, calls, strict=True):
        mine[[i, j]] += call.value
        one = {**env, "i": i + 1, "j": j + 1, "over": {"k": lambda _: [{"k": k + 1} for k in range(kk)]}}
        rates = call.given[0]
        replay.compare(the(parts, "m_")(one), rates.sum())
        replay.compare([the(parts, "(m_")({**one, "k": k + 1, "m_ij": 1}) for k in range(kk)], rates)
    gammas = iter(at.rng.of("standard_gamma"))
    for i in range(n):
        next(gammas)  # of a_i
        for k in range(kk):
            shape, drawn = next(gammas)
            over = {"j": lambda _, i=i: [{"j": j + 1} for j in np.flatnonzero(~held[i])]}
            one = env | {"i": i + 1, "k": k + 1, "over": over, r"m_i\cdotk": mine[i, k]}
            one |= {"a": at.state.a, "c": at.before.c}
            replay.compare(the(parts, "w_")(one), [shape, drawn / at.state.w[i, k]])
        w[i] = at.state.w[i]
        next(gammas)  # of c_i
    next(gammas)  # of γ₀
    pairs = np.argwhere(~held & (np.arange(n)[:, None] < np.arange(n)))
    for k in range(kk):
        shape, drawn = next(gammas)
        over = {"i<j": lambda _: [{"i": i + 1, "j": j + 1} for i, j in pairs]}
        one = env | {"k": k + 1, "over": over, r"m_\cdot\cdotk": mine[:, k].sum() / 2}
        one |= {r"\gamma_0": at.state.top[0], "c_0": at.before.top[1]}
        replay.compare(the(parts, "r_k")(one), [shape, drawn / at.state.r[k]])
    return replay.worst


def relational(key, tex):
    """The weights of each node's clusters."""
    picks = []
    at = ran(key, patches=[watched(samplers_textbook, "pick", picks)], beta=0.2)
    parts, replay = (
        assignments(tex.replace("B(", BETA + "("), [*CLUSTER_WORDS, ("p(z_i = a", "p("), (r"\mid z_{-i}, Y)", ")")]),
        Replay(()),
    )
    n = len(at.before.z)
    y, seen = np.zeros((n, n)), ~np.eye(n, dtype=bool)
    y[tuple(at.model.edges.T)] = y[tuple(at.model.edges.T[::-1])] = 1
    seen[tuple(at.model.held.T)] = seen[tuple(at.model.held.T[::-1])] = False
    z = at.before.z.copy()
    for i, call in enumerate(picks):
        others = np.arange(n) != i
        labels = np.unique(z[others])

        def counts(rows, columns):
            """Edges and pairs without one between two groups of nodes, each pair once."""
            block = np.outer(rows, columns) & seen
            block = np.triu(block | block.T)
            return y[block].sum(), (1 - y[block]).sum()

        weights, env = call.given[0], settings(at) | {r"\alpha": at.before.alpha[0], BETA: special.beta}
        together = []
        for k in np.flatnonzero(weights):
            terms = []
            for b in labels:
                between, own = counts(others & (z == k), others & (z == b)), counts(~others, others & (z == b))
                terms.append(dict(zip(("e_ab", "f_ab", "e_ib", "f_ib"), (*between, *own), strict=True)))
            known = k in labels
            one = env | {"N_a": (others & (z == k)).sum(), "over": {"b": lambda _, terms=terms: terms}}
            found = the(parts, "p()" if known else "q()")(one)
            together.append((found, weights[k]))
        replay.compare(*(shares(each) for each in zip(*together, strict=True)))
        z[i] = call.value
    return replay.worst


def slope_of(model, x):
    """∂ log p(Y, x)/∂x by the model's own gradient, which tests compare with differences."""
    grad = np.empty_like(x)
    model.log_joint(np.log(x), grad)
    return grad / x


RATE = 0.01
"""γ: the optimisers, which have tests of their own, are a constant rate here."""
ASCENT_WORDS = [
    (r"\frac{\partial}{\partial x_d}\log p(Y, x)", "P"), (r"\nabla_x", ""), (r"\nabla_\theta", ""), (r"\log p(Y, x)", "P"),
    (r"\log q(x)", "Q"), (r"\log q(\theta)", "Q"), (r"\log\Bigl|\tfrac{dx}{d\theta}\Bigr|", "J"),
    (r"\partial_a F_{a_d}(b_d x_d)", "F"), (r"f_{a_d}(b_d x_d)", "f"), (r"g^\alpha_d", "u"), (r"g^\beta_d", "t"),
    (r"g^\alpha", "u"), (r"g^\beta", "t"), (r"\theta_d \leftarrow", r"\theta \leftarrow"),
    (r"\sigma_d \leftarrow", r"\sigma \leftarrow"), ("g_d", "g"),
]  # fmt: skip


def ascents(key, tex):
    """A step of gradient ascent: of a point, or of the parameters of gammas or normals."""
    at = ran(
        key, patches=[lambda rng, state: patch.object(METHODS[key], "textbook_change", lambda self, _, g: RATE * g)]
    )
    parts, replay, before, state = assignments(tex, ASCENT_WORDS), Replay(()), at.before, at.state
    if key == "network_map":
        start, end = [before.theta], [state.theta]
        x = the(parts, "x_d")({r"\theta_d": before.theta})
        drawn = {"P": slope_of(at.model, x)}
        names = [r"\theta"]
    elif "norm" in key:
        start, end = [before.centre, before.raw_spread], [state.centre, state.raw_spread]
        noise = np.concatenate([np.ravel(value) for _, _, value in at.rng.log])
        spread = np.log1p(np.exp(before.raw_spread))
        each = zip(before.centre, spread, noise, strict=True)
        theta = np.array([the(parts, r"\theta_d")({"m_d": m, "s_d": s, r"\xi_d": xi}) for m, s, xi in each])
        x, inner = the(parts, "x_d")({r"\theta_d": theta}), special.expit(theta)
        drawn = {"P": slope_of(at.model, x) * inner, "J": 1 - inner, "Q": -noise / spread, r"\xi_d": noise}
        names = ["m", r"\sigma"]
    else:
        start, end = list(before.theta), list(state.theta)
        (a, b), y = np.log1p(np.exp(before.theta)), []
        log = iter(at.rng.log)
        for shape in a:  # below 1 a gamma of shape + 1 times U^(1/shape)
            y.append(next(log)[2])
            y[-1] *= (1 - next(log)[2]) ** (1 / shape) if shape < 1 else 1.0
        y = np.array(y)
        moved = (special.gammainc(a + 1e-5, y) - special.gammainc(a - 1e-5, y)) / 2e-5
        drawn = {"P": slope_of(at.model, y / b), "Q": (a - 1) * b / y - b, "F": moved, "f": stats.gamma.pdf(y, a)}
        drawn |= {"b_d": b, "x_d": y / b}
        names = [r"\alpha", r"\beta"]
    for d in range(len(start[0])):
        env = {r"\gamma": RATE} | {name: value[d] for name, value in drawn.items()}
        env |= {name: value[d] for name, value in zip(names, start, strict=True)}
        env |= {f"{name}_d": env[name] for name in names}
        known = ("x_d", r"\theta_d", r"\xi_d")
        execute([([left], value) for left, value in parts if left not in known], env)
        for name, value in zip(names, end, strict=True):
            replay.compare(env[name], value[d])
    return replay.worst


def network_hmc(key, tex):
    """One leapfrog step, of a trajectory that is accepted."""

    def accepted(rng, state):
        return patch.object(rng, "random", lambda: 1e-300, create=True)

    at = ran(key, patches=[accepted], n_leapfrog=1)
    words = [
        (r"\text{then } L \text{ times:}", ""),
        (r"\\&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr)", ""),
    ]
    (_, _, scale), (_, _, p) = at.rng.log
    parts, replay = assignments(tex, words), Replay(())
    env = {r"\epsilon": at.method.step_size * scale, r"\theta": at.before.log_x, "I": np.eye(len(p))}
    env |= {"normals": lambda: p, "slope": lambda theta, _: -np.exp(theta) * slope_of(at.model, np.exp(theta)) - 1}
    execute([([left], value) for left, value in parts], env)
    replay.compare(env["x"], np.exp(at.state.log_x))
    return replay.worst


# Topics on a sphere


def spherical(key, tex):
    """The step of all topics at once, as one vector, given the draws of the documents' θ."""
    slopes = []

    def accepted(rng, state):
        return patch.object(rng, "random", lambda: 1e-300, create=True)

    one_leap = {"n_leapfrog": 1} if key in ("spherical_gibbs", "spherical_gmc") else {}
    patches = [watched(spherical_steps, "draw_theta", [], quiet=True), watched(spherical_steps, "slope", slopes)]
    at = ran(key, steps=1, patches=[accepted, *patches], **one_leap)
    model, before = at.model, at.before
    shape = before.beta.shape
    noise = next(value for name, _, value in at.rng.log if name == "standard_normal")
    taken = iter(slopes)
    tex = tex.partition(r"\\&\text{accept")[0]
    words = [(r"{v \sim \Lambda\,\mathcal N(0, I)}", r"v \sim \Lambda\,\mathcal N(0, I)"), (r"_{\!\beta}", ""), (r"\hat U", r"\tilde U"),
             (r"(\beta,\theta)", r"(\beta)"), (r"\text{then } L \text{ times:}", ""), (r"(\beta, v) ", "Z "),
             (r"\text{then } L \text{ times, with new } \theta^{(n)} \sim p(\theta\mid\beta, v):", "")]  # fmt: skip
    replay = Replay(())

    def slope(beta, _):
        call = next(taken)
        replay.compare(np.reshape(beta, shape), call.given[1])
        return np.ravel(call.value)

    def geodesic(time, x, v):
        moved = SimpleNamespace(beta=np.reshape(x, shape).copy(), velocity=np.reshape(v, shape).copy())
        spherical_steps.flow(moved, time)
        return moved.beta.ravel(), moved.velocity.ravel()

    def projection(_):
        blocks = np.reshape(env[r"\beta"], shape)
        out = np.eye(blocks.size)
        for k, x in enumerate(blocks):
            here = slice(k * shape[1], (k + 1) * shape[1])
            out[here, here] -= np.outer(x, x)
        return out

    env = settings(at) | {
        r"\beta": before.beta.ravel(), "v": before.velocity.ravel(), "x": 0.0, "slope": slope, "geodesic": geodesic,
        "projection": projection, r"\tau": (shape[0] / model.k / model.n_data) ** 0.5, "I": 1.0,
        "m": shape[0] * (shape[1] - 1), "normals": noise.ravel,
    }  # fmt: skip
    if "xi" in before.extra:
        env[r"\xi"] = before.extra["xi"][0]
    for left, value in assignments(tex, words):
        if left == "Z":
            env[r"\beta"], env["v"] = value(env)
        elif left in ("v", r"\xi"):
            env[left] = value(env)
    replay.compare(np.reshape(env[r"\beta"], shape), at.state.beta)
    replay.compare(np.reshape(env["v"], shape), at.state.velocity)
    if "xi" in before.extra:
        replay.compare(env[r"\xi"], at.state.extra["xi"][0])
    return replay.worst


def spherical_variational(key, tex):
    """The fit S_d of each document, and the step of its λ by the slopes of that."""
    at = ran(key, steps=1, sweeps=1, step_size=0.01)
    model, replay, v = at.model, Replay(()), at.model.n_words / 2
    words = [(r"F^{-1}\nabla_{\!\lambda} S_d", "U"), (r"\log\lambda_d &\leftarrow", r"p ="), (r"A(\sigma)", "a")]
    words += [(r"\mathbb E\lVert\beta\theta_d\rVert^2", "q"), (r"\mathbb E\theta_d", "t")]
    parts = assignments(tex, words)
    a = special.ive(v, model.s) / special.ive(v - 1, model.s)
    for d in at.state.batch:
        lam, beta, total = at.before.extra["lam"][d], at.before.beta, at.before.extra["lam"][d].sum()
        inner = a**2 * beta @ beta.T + (1 - a**2) * np.eye(len(beta))
        env = settings(at) | {r"\kappa": model.k, "a": a, "v_d": model.training[d], "b": beta.T, "t": lam / total}
        env["q"] = ((np.outer(lam, lam) + np.diag(lam)) * inner).sum() / total / (total + 1)
        if key == "spherical_vi":
            replay.compare(the(parts, "S_d")(env), spherical_steps.fit(model, beta, model.training[d], lam))
        fisher = np.diag(special.polygamma(1, lam)) - special.polygamma(1, total)
        slope = spherical_steps.derivative(
            lambda x, d=d: spherical_steps.fit(model, at.before.beta, model.training[d], x), lam
        )
        env |= {r"\lambda_d": lam, "U": np.linalg.solve(fisher, slope)}
        replay.compare(the(parts, "p")(env), np.log(at.state.extra["lam"][d]))
    return replay.worst


# Models: their joint densities


def joint(key, tex):
    """The densities of the statements, together, beside the compiled log joint: what differs between two points."""
    model, rng, parts = SMALL[key](), np.random.default_rng(3), assignments(tex.replace(r"\mathcal N", NORMAL))
    base = {**symbols(model), GAMMA: lambda a, b: stats.gamma(a, scale=1 / b)}
    base[NORMAL] = lambda mean, covariance: stats.multivariate_normal(cov=covariance)

    def of_factors(x):
        w, r, (gamma, mass, rate), (precision,) = model.parts(x)
        env = base | {"W": w, r"\sigma": precision**-0.5, "I": np.eye(len(w)), r"\gamma": gamma, r"\gamma_0": mass}
        env |= {"c_0": rate, "K": len(r)}
        out = the(parts, "y_n")(env).logpdf(model.y).sum() + the(parts, "1/")(env).logpdf(precision)
        out += the(parts, "r_k")(env).logpdf(r).sum() + the(parts, "c_0")(env).logpdf([gamma, mass, rate]).sum()
        return out + sum(the(parts, "W")({**env, "r_k": one}).logpdf(w[:, k]).sum() for k, one in enumerate(r))

    def of_network(x):
        w, r = model.weights(x)
        n, kk = w.shape
        a, c, (mass, rate) = x[-2 * n - 2 : -n - 2], x[-n - 2 : -2], x[-2:]
        env = base | {
            "w": w,
            "r": r,
            r"\gamma_0": mass,
            "c_0": rate,
            "K": kk,
            "over": {"k": lambda _: range_of("k", kk)},
        }
        y, out = model.data.adjacency(), 0.0
        for i, j in set(zip(*np.triu_indices(n, 1), strict=True)) - set(map(tuple, model.held)):
            p = the(parts, "P(")({**env, "i": i + 1, "j": j + 1})
            out += np.log(p if y[i, j] else 1 - p)
        out += sum(the(parts, "w_")({**env, "a_i": a[i], "c_i": c[i]}).logpdf(w[i]).sum() for i in range(n))
        out += the(parts, "a_i")(env).logpdf(a).sum() + the(parts, "c_0")(env).logpdf([*c, rate]).sum()
        return out + the(parts, "r_k")(env).logpdf(r).sum() + the(parts, r"\gamma_0")(env).logpdf(mass)

    found, wanted = [], []
    for _ in range(3):
        x = rng.gamma(2.0, 0.4, model.n_unknowns) + 0.05
        found.append((of_factors if key == "factors" else of_network)(x))
        wanted.append(model.log_joint(np.log(x), np.empty_like(x)))
    replay = Replay(())
    replay.compare(np.diff(found), np.diff(wanted))
    return replay.worst


def range_of(name, size):
    """The terms of a sum over an index."""
    return [{name: one} for one in range(1, size + 1)]


def topics_model(key, tex):
    """The density of topics and words, with the Dirichlets integrated out, at two states."""
    at, parts, logs = ran("collapsed_gibbs"), assignments(tex), []
    env = settings(at) | {DIRICHLET: lambda a: a}
    for state in (at.before, at.state):
        out = 0.0
        for left, counts in ((r"\pi", state.counts[:, :3]), (r"\phi", state.weights[:, :3].T)):
            a = the(parts, left)(env)
            out += (special.gammaln(counts + a) - special.gammaln(a)).sum()
            out -= special.gammaln(counts.sum(axis=1) + counts.shape[1] * a).sum()
        logs.append((out, log_likelihood(at.model, state)))
    replay = Replay(())
    replay.compare(*(np.diff(each) for each in zip(*logs, strict=True)))
    return replay.worst


def mixture_model(key, tex):
    """The gammas of α given the sticks, and of a new cluster's words."""
    at, parts, replay = ran("mixture_gibbs", steps=1), assignments(tex), Replay(())
    gammas = at.before.gammas[:, : at.before.z.max() + 1]
    shape, rate = the(parts, r"\alpha")({**settings(at), GAMMA: lambda a, b: (a, b)})
    (given, drawn), *others = at.rng.of("standard_gamma")
    logs = np.log(gammas[1] / gammas.sum(axis=0)).sum()
    replay.compare([shape + gammas.shape[1], rate - logs], [given, drawn / at.state.alpha[0]])
    replay.compare(the(parts, r"\theta")({**settings(at), DIRICHLET: lambda a: a}), others[2][0])
    return replay.worst


def cluster_models(key, tex):
    """The density of a cluster's first point, and the draw of α."""
    model, replay, empty = SMALL[key](), Replay(()), SMALL[key]().x[:0]
    parts = assignments(
        tex,
        [(r"x_i \mid z_i", "x_i"), (r"\mu_k \mid \Sigma_k", "m_k"), (r"\mu_k &", "m_k"), (r"\mu_k \sim", r"m_k \sim")],
    )
    env = symbols(model) | {
        "I": np.eye(2),
        r"\mathrm{IW}": lambda *given: given,
        VMF: lambda mean, length: length * mean,
    }
    env |= {GAMMA: lambda a, b: (a, b), "m": getattr(model, "prior_mean", 0.0)}
    shape, rate = the(parts, r"\alpha")(env)
    rng = Recorder()
    alpha = cluster_steps.draw_concentration(rng, 1.3, 4, 14)
    (_, one), (_, two), (given, drawn) = rng.of("standard_gamma")
    rate -= np.log(one / (one + two))
    odds = (shape + 3) / (14 * rate)
    more = rng.of("random")[0][1] < odds / (1 + odds)
    replay.compare([shape + 3 + more, rate], [given, drawn / alpha])
    if key == "sphere_clusters":
        replay.compare(the(parts, "m_k")(env), sphere_textbook.resultant(model, empty))
        along = the(parts, "x_i")({**env, r"\mu_z_i": model.x[0]}) @ (model.x[1] - model.x[2])
        density = [np.log(sphere_textbook.density(model, model.x[i], model.x[0])) for i in (1, 2)]
        replay.compare(along, density[0] - density[1])
    else:
        freedom, scale = the(parts, r"\Sigma_k")(env)
        found = []
        the(parts, "m_k")({**env, r"\Sigma_k": scale, "root": lambda covariance: found.append(covariance) or 0.0})
        t = stats.multivariate_t(np.zeros(2), (scale + found[0]) / (freedom - 1), df=freedom - 1)
        replay.compare([t.pdf(x) for x in model.x], [cluster_steps.next_density(model, empty, x) for x in model.x])
    return replay.worst


def sparse_model(key, tex):
    """The density of τ² given w: that of the inverse Gaussian with which 1/τ² is drawn."""
    calls, logs = [], []
    at = ran("sparse_gibbs", patches=[watched(sparse_steps, "inverse_gaussian", calls)])
    parts, replay = assignments(tex), Replay(())
    mean, shape = calls[0].given
    env = settings(at) | {r"\sigma": 1.0, r"\mathrm{Exp}": lambda rate: rate}
    for tau in (0.3, 0.9):
        variance = []
        the(parts, r"w_j")(
            {**env, r"\tau_j": tau, "root": lambda found, variance=variance: variance.append(found) or 0.0}
        )
        rate = the(parts, r"\tau_j")(env)
        prior = stats.norm.logpdf(at.state.w[0], scale=variance[0] ** 0.5) - rate * tau**2
        # The density of 1/τ² times its slope.
        logs.append((prior, stats.invgauss.logpdf(tau**-2, mean / shape, scale=shape) - 4 * np.log(tau)))
    replay.compare(*(np.diff(each) for each in zip(*logs, strict=True)))
    return replay.worst


def spherical_model(key, tex):
    """The energy of a document's proportions, and of all topics with μ integrated out."""
    at, logs, priors = ran("spherical_gmc", steps=1), [], []
    parts = assignments(tex, [(r"v_d \mid \theta_d, \beta", "v_d")])
    model = at.model
    env = settings(at) | {r"\sigma": model.s, r"\kappa": model.k, r"\kappa_0": model.k0, "m": model.mean}
    env |= {VMF: lambda mean, length: length * mean, DIRICHLET: lambda a: a}
    for state in (at.before, at.state):
        y, v = state.roots[0], model.training[0]
        one = env | {r"\theta_d": y**2, r"\beta": state.beta.T}
        # θ = y² has the slope 2y.
        density = the(parts, "v_d")(one) @ v + ((the(parts, r"\theta_d")(one) - 1) * 2 + 1) * np.log(y).sum()
        logs.append((-density, spherical_steps.theta_energy(model, state.beta, v, y)))
        pull = the(parts, r"\mu")(one) + sum(the(parts, r"\beta_k")({**one, r"\mu": each}) for each in state.beta)
        length = np.linalg.norm(pull)
        priors.append((sphere_textbook.log_c(model.n_words, length), spherical_steps.log_c(model, state.beta)))
    replay = Replay(())
    for pairs in (logs, priors):
        replay.compare(*(np.diff(each) for each in zip(*pairs, strict=True)))
    return replay.worst


# The formulas

TOPICS = (r"\tfrac{D}{n}", "1")
READ = {
    "lda_scir": (stochastic_topics, [TOPICS, (r"\hat a = \beta", r"\hat a = 2\beta"), ("(1 - e^{-h})", "(1 + e^{-h})")]),
    "lda_sgrld": (stochastic_topics, [TOPICS, (r"2\epsilon", r"\epsilon"), (r"B_{k\cdot}", "")]),
    "lda_sgrhmc": (stochastic_topics, [(r"\tfrac\epsilon4", r"\tfrac\epsilon2"), ("e^{-2", "e^{-"), (r"- \frac12", "")]),
    "lda_sghmc": (stochastic_topics, [(r"2\epsilon C", r"\epsilon C"), (r"\beta - 1", r"\beta"), ("1 - ", "1 + ")]),
    "lda_sgld": (stochastic_topics, [(r"2\epsilon", r"\epsilon"), (r"\frac Dn", ""), (" - 1 - ", " - ")]),
    "collapsed_gibbs": (topic_of_a_word, [(r"V\beta", r"\beta"), (r" + \alpha", "")]),
    "minibatch_gibbs": (topic_of_a_word, [(r"\beta + N_k", "N_k"), (r"\,\phi_{kw}", "")]),
    "mixture_sgrld": (stochastic_mixture, [(r"\tfrac{N}{n}", ""), (r"2\epsilon", r"\epsilon"), ("a - x", "-x")]),
    "mixture_scir": (stochastic_mixture, [(r"\tfrac{N}{n}", ""), ("a + K", "a"), (r"\hat a = a +", r"\hat a =")]),
    "mixture_gibbs": (
        mixture_gibbs,
        [("a + N", "N"), ("1+N_k", "N_k"), (r"\alpha+", ""), ("1-v_l", "1+v_l"), (r"\mathbb 1(w_k > u_i)", "w_k")],
    ),
    "sparse_gibbs": (sparse, [("^2 A", "^22A"), ("X + D", "X + 2D"), (r"\lambda\sigma/", r"2\lambda\sigma/"), (r"w\cdot x_i", r"2w\cdot x_i")]),
    "sparse_minibatch": (sparse, [("z, \\sigma", "2z, \\sigma"), (r"w\cdot x_i", r"2w\cdot x_i")]),
    "sparse_blocked": (sparse, [("R/2", "R"), ("N/2", "N"), ("R = z", "R = 2z"), ("(A^{-1}", "(2A^{-1}")]),
    "factors_gibbs": (
        factors_gibbs_step,
        [("I + G", "2I + G"), ("/2s", "/s"), (r"\frac{\lambda}{s}", r"\lambda"), (r"s = \lambda +", "s ="), ("1/s", "s"), ("/D)", ")")],
    ),
    "cluster_collapsed": (clusters, [("N_{k,-i}", "1"), (r"\alpha\; p", r"2\alpha\; p")]),
    "cluster_minibatch": (clusters, [("N_{k,-i}", "1"), (r"\alpha\;", r"2\alpha\;")]),
    "cluster_slice": (clusters, [("w_k > u", "w_k < u"), (r"N_K,\alpha", r"N_K,2\alpha"), ("0, w", "0, 2w")]),
    "sphere_collapsed": (clusters, [("N_{k,-i}", "1"), (r"\kappa_0 m +", ""), (r"\kappa x_i", "x_i"), (r"\alpha\; ", "")]),
    "sphere_minibatch": (clusters, [("N_{k,-i}", "1"), (r"\kappa_0 m +", r"2\kappa_0 m +"), (r", \lVert R_k\rVert)", ", 1)")]),
    "sphere_slice": (clusters, [(r"\mathbb 1(w_k > u_i)", "w_k"), (r"\kappa_0 m +", ""), (r"m + \kappa", "m +")]),
    "network_gibbs": (network, [("a_i + m", "m"), (r"c_i + r_k", "c_i +"), (r"\tfrac{\gamma_0}{K} +", ""), ("c_0 +", "")]),
    "network_irm": (relational, [("N_a", "1"), (r"\alpha", "1"), (r"B(\beta, \beta)", "1")]),
    "network_hmc": (network_hmc, [(r"\tfrac{\epsilon}{2}", r"\epsilon"), (r"\epsilon\, p", "p")]),
    "network_map": (ascents, [(r"\gamma\,", ""), (r"e^{-\theta_d}", r"e^{\theta_d}"), (r"1+e^{\theta_d}", r"2+e^{\theta_d}")]),
    **dict.fromkeys(
        ("network_sgvb", "factors_sgvb"),
        (ascents, [(r"\frac{x_d}{b_d}", "x_d"), (r"e^{-\alpha_d}", r"e^{\alpha_d}"), ("- \\log q(x)", ""), ("{-\\partial", "{\\partial")]),
    ),
    **dict.fromkeys(
        ("network_norm_sgvb", "factors_norm_sgvb"),
        (ascents, [(r"+ s_d\,", "+"), (r"g_d\,\xi_d", "g_d"), (r"e^{-\sigma_d}", r"e^{\sigma_d}")]),
    ),
    "spherical_sggmc": (spherical, [("2Ch", "Ch"), (r"- h\tau", r"- \tau"), ("Ch/2} v", "Ch} v")]),
    "spherical_gsgnht": (spherical, [("2Ch", "Ch"), ("/m - 1", "/m"), (r"\tfrac h2", "h")]),
    "spherical_gibbs": (spherical, [(r"\tfrac{h\tau}{2}", r"h\tau"), (r"_{h\tau}", r"_{2h\tau}")]),
    "spherical_gmc": (spherical, [(r"\tfrac{h\tau}{2}", r"h\tau"), (r"_{h\tau}", r"_{2h\tau}")]),
    "spherical_vi": (spherical_variational, [(r"+ \alpha", ""), (r")/\lambda_d", ")"), (r"S_d = \kappa", "S_d =")]),
    "spherical_stovi": (spherical_variational, [(r"+ \alpha", ""), (r")/\lambda_d", ")")]),
}  # fmt: skip
"""How the update of each method is read, and faults in it that must show."""
READ_MODELS = {
    "topics": (topics_model, [(r"\mathrm{Dir}(\alpha)", r"\mathrm{Dir}(2\alpha)"), (r"\mathrm{Dir}(\beta)", r"\mathrm{Dir}(1)")]),
    "network": (joint, [(r"\gamma_0/K", r"\gamma_0"), ("(g,g)", "(g,1)"), ("(e,e)", "(e,1)"), (r"1-e^{-\sum", r"1-e^{-2\sum")]),
    "factors": (joint, [(r"\gamma r_k, \gamma", r"\gamma, \gamma r_k"), ("(.1,.1)", "(.1,.2)"), ("/K", "")]),
    "mixture": (mixture_model, [("1/m", "m"), (r"\mathrm{Dir}(a)", r"\mathrm{Dir}(1)")]),
    "clusters": (cluster_models, [(r"\nu_0-3", r"\nu_0-2"), (r"/\kappa_0", ""), ("(1,1)", "(1,2)")]),
    "sphere_clusters": (cluster_models, [(r"(m, \kappa_0)", r"(m, \kappa)"), (r"}, \kappa)", r"}, 2\kappa)"), ("(1,1)", "(2,1)")]),
    "sparse": (sparse_model, [(r"\lambda^2/2", r"\lambda^2"), (r"\sigma^2\tau_j^2", r"\sigma^2\tau_j")]),
    "spherical": (spherical_model, [(r"\mathrm{Dir}(\alpha)", r"\mathrm{Dir}(2\alpha)"), (r"\ \kappa", r"\ 2\kappa"), (r"(\mu, \sigma)", r"(\mu, \kappa)")]),
}  # fmt: skip
"""The same of the models."""
UNREAD: dict[str, str] = {}
"""Methods and models that are not read, each with the reason: none."""
PARTLY = {
    "sparse_minibatch": "τ ~ p(τ | w): the other card has it",
    **dict.fromkeys(("cluster_minibatch", "cluster_slice"), "NIW(· | x), and p(x) given other points: names without parameters"),
    "cluster_collapsed": "p(x) given other points: a name without parameters",
    "sphere_minibatch": "p(x) of the prior: a name",
    "network_irm": "f = n − e: the counts of pairs without an edge are given",
    "spherical_gibbs": "θ by GMC in words, and the accept step",
    "spherical_gmc": "the accept step in words",
    "network_hmc": "the accept step in words",
    **dict.fromkeys(("network_sgvb", "factors_sgvb"), "x ~ Gamma(a, b): the draws are taken as such"),
    "spherical_vi": "the step of b: w_k and the norm's argument are not written out",
    "spherical_stovi": "the step of b: w_k and the norm's argument are not written out; ρ_t belongs to it",
    "mixture": "GEM(α) and what is drawn from w and θ: names", "topics": "what is drawn from π and φ: names",
    **dict.fromkeys(("clusters", "sphere_clusters"), "GEM(α) and what is drawn from w: names"),
    "sparse": "z and y given w: in words",
}  # fmt: skip
"""Parts that no comparison sees of formulas that are read."""
TOLERANCE = 1e-8


def shown(key):
    """The LaTeX of a method or a model."""
    return METHODS[key].update if key in READ else MODELS[key].tex


def test_every_method_and_model_is_read_or_has_a_reason():
    assert not UNREAD.keys() & {*READ, *READ_MODELS}
    assert PARTLY.keys() <= {*READ, *READ_MODELS}
    assert {*METHODS} | {*MODELS} == {*READ, *READ_MODELS, *UNREAD}


@for_each("key", [*READ, *READ_MODELS])
def test_the_displayed_formula_is_the_codes(key):
    """And so the compiled step's, which equals the textbook's in another test."""
    how, _ = (READ | READ_MODELS)[key]
    assert how(key, shown(key)) < TOLERANCE


@for_each(("key", "right", "planted"), [(key, *fault) for key, (_, f) in (READ | READ_MODELS).items() for fault in f])
def test_another_displayed_formula_is_seen(key, right, planted):
    how, _ = (READ | READ_MODELS)[key]
    assert right in shown(key)
    assert how(key, shown(key).replace(right, planted)) > 1e-4
