"""The common part of all methods for topics: the layout of the counts, and Gibbs sampling of a document's topics given
φ.

The topics of a word lie side by side, (words, columns), with a column for each topic, their number rounded up to
a multiple of :data:`BLOCK`; the columns beyond have the scale 0 and are never drawn. So the products are computed with
vector instructions, and the sums are taken in one fixed order, block by block: the same draws on every machine.
"""

from numba import types

from sgmcmc_lab.samplers.compile import jit

BLOCK = 8
ids = types.Array(types.int32, 1, "C")


def columns(n_topics: int) -> int:
    """The columns of an array of counts."""
    return -(-n_topics // BLOCK) * BLOCK


@jit.helper
def find(p, ends, u, n_topics):
    """The topic in whose part of Σ p the number u lies; ``ends`` (columns / BLOCK,) are the sums up to each block.

    Sums are counted that are not above u: a branch for each would be guessed wrong at every other draw.
    """
    b = 0
    for i in range(len(ends) - 1):
        b += u >= ends[i]
    i = b * BLOCK
    if b > 0:
        u -= ends[b - 1]
    two, four, six = p[i] + p[i + 1], p[i + 2] + p[i + 3], p[i + 4] + p[i + 5]
    four += two
    k = i + (u >= p[i]) + (u >= two) + (u >= two + p[i + 2]) + (u >= four)
    k += (u >= four + p[i + 4]) + (u >= four + six) + (u >= four + (six + p[i + 6]))
    return min(k, n_topics - 1)


@jit.helper
def pick(p, ends, u, n_topics):
    """The topic at the share u of Σ p; ``ends`` (columns / BLOCK,) is scratch."""
    total = 0.0
    for b in range(len(ends)):
        i = b * BLOCK
        total += ((p[i] + p[i + 1]) + (p[i + 2] + p[i + 3])) + ((p[i + 4] + p[i + 5]) + (p[i + 6] + p[i + 7]))
        ends[b] = total
    if not total > 0:
        # Every φ of the word has underflowed.
        return int(u * n_topics)
    return find(p, ends, u * total, n_topics)


@jit.helper
def sweep(rng, words, topics, counts, weights, prior, scale, alpha, n_topics, p, ends):
    """Draw every topic of one document anew, given the others and φ = (weights + prior)·scale.

    p(z = k) ∝ (n_k + α) φ_kw: the document's proportions are integrated out. ``words``, ``topics`` (length,),
    ``counts`` n (columns,), ``weights`` (words, columns), ``scale``, ``p`` (columns,).
    """
    for i in range(len(words)):
        w = words[i]
        counts[topics[i]] -= 1
        for k in range(len(p)):
            p[k] = (counts[k] + alpha) * (weights[w, k] + prior) * scale[k]
        z = pick(p, ends, rng.random(), n_topics)
        topics[i] = z
        counts[z] += 1
