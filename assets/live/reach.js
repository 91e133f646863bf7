// Axes that grow when chains leave them, as in app/views/auto_range.py.

const SHARE = 0.05
const GROWTH = 1.5
const LENGTHS = [1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8, 10, 13, 16, 20, 25]
const MOST = 30

export class Reach {
  /** @param {[number, number]} ends */
  constructor([low, high]) {
    this.middle = (low + high) / 2
    this.half = (high - low) / 2
    /** The distance of each end from the middle, in multiples of the first distance. */
    this.times = [1, 1]
  }

  get ends() { return [this.middle - this.times[0] * this.half, this.middle + this.times[1] * this.half] }

  /** Grow until the axis holds the latest places of every lane. @param {number[][]} lanes @returns {boolean} whether it grew */
  hold(lanes) {
    const [before] = this.times
    for (const places of lanes.filter((one) => one.length)) {
      const away = places.map((x) => Math.abs(x - this.middle) / this.half)
      if (away.filter((x) => x > before).length / away.length > SHARE)
        this.times = Array(2).fill(Math.min(Math.max(this.times[0], GROWTH * Math.max(...away)), MOST))
    }
    return this.times[0] > before
  }

  /** Fit each end to the latest places, given as ends [low, high] for every lane.
   * @param {number[][][]} lanes @returns {boolean} whether it changed */
  follow(lanes) {
    const farthest = [0, 1].map((k) =>
      Math.max(0, ...lanes.flatMap((ends) => ends.map((end) => ((k ? 1 : -1) * (end[k] - this.middle)) / this.half))))
    const before = this.times
    this.times = farthest.map((far) => LENGTHS.find((times) => times >= far) ?? MOST)
    return this.times.some((times, k) => times !== before[k])
  }
}
