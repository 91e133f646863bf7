"""The topics on a sphere as their top words."""

from sgmcmc_lab.app.views.models.words import TopWords


class SphericalWords(TopWords):
    """The largest topics; each word's bar is its share of the topic's length, β²."""

    key = "spherical_words"
    hint = "with their shares; a bar: the word's weight, squared"
    requires = "spherical"
