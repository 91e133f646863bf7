// Compiled functions in WebAssembly: arrays in their memory, and calls in Numba's calling convention.

/** A place in the module's memory with a shape; its numbers have 8 bytes, in C order.
 * @typedef {{pointer: number, shape: number[], type: "f8" | "i8"}} NDArray */
/** An array as JSON: its numbers, or their bytes in base64.
 * A smooth array has the bytes of its differences, their order, and its smallest and largest number.
 * An array of random numbers has 0 in place of those that are drawn here.
 * @typedef {{shape: number[], type: "f8" | "i8", data?: string | Uint8Array, values?: number[], low?: number, high?: number, order?: number, normals?: Normals}} Packed */
/** Normal random numbers of a seed: those before the first, the first one's place, and bits of the signs that change.
 * @typedef {{seed: number, skipped: number, first: number, n: number, signs: string}} Normals */
/** How a compiled function takes its arguments: names and kinds; the kind of a tuple is itself such a list.
 * @typedef {Array<[string, any]>} Arguments */
/** @typedef {{name: string, arguments: Arguments, result: string | null}} Signature */

/** @param {number[]} shape */
const size = (shape) => shape.reduce((a, b) => a * b, 1)

/** @param {string} text @returns {Uint8Array} */
export function bytesOf(text) {
  // @ts-ignore Not yet in every browser.
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text)
  const characters = atob(text)
  // A loop, because a function call for each character takes seconds for a large table.
  const out = new Uint8Array(characters.length)
  for (let i = 0; i < out.length; i++) out[i] = characters.charCodeAt(i)
  return out
}

/** The levels of a smooth array between its smallest number and its largest, as samplers/live/description.py has them. */
const LEVELS = 2 ** 44

/** The numbers of a smooth array from their differences of some order. @param {Uint8Array} bytes @param {number} low @param {number} high @param {number} order */
const summed = (bytes, low, high, order) => {
  const n = bytes.length / 8
  const sums = Array(order).fill(0)
  return Float64Array.from({ length: n }, (_, i) => {
    let folded = 0
    for (let k = 7; k >= 0; k--) folded = 256 * folded + bytes[k * n + i]
    let level = folded % 2 ? -(folded + 1) / 2 : folded / 2
    for (let k = 0; k < order; k++) level = sums[k] += level
    return low + ((high - low) * level) / LEVELS
  })
}

/** The numbers of an array of doubles, or the bytes of an array of integers. @param {Packed} packed @returns {Float64Array} */
export const numbersOf = ({ values, data = "", low, high, order = 0 }) => {
  if (values) return Float64Array.from(values)
  const bytes = typeof data === "string" ? bytesOf(data) : data
  return low === undefined || high === undefined ? new Float64Array(bytes.buffer) : summed(bytes, low, high, order)
}

/** The contents of compressed text in base64. @param {string} text @returns {Response} */
export const unzipped = (text) => {
  // No Blob: a worker in WebKit cannot read one when the page is a local file.
  const { body } = new Response(/** @type {BodyInit} */ (bytesOf(text.trim())))
  return new Response(/** @type {ReadableStream<any>} */ (body).pipeThrough(new DecompressionStream("gzip")))
}

export class Engine {
  /** @param {WebAssembly.Instance} instance @param {Record<string, Signature>} signatures */
  constructor(instance, signatures) {
    /** @type {any} */
    this.exports = instance.exports
    this.exports._initialize?.()
    this.signatures = signatures
    /** The generator's functions, which compiled code calls: for 64 bits, for 32 bits, and for a double. */
    this.generator = [...new Uint32Array(this.memory, this.exports.generator_functions(), 3)].map(BigInt)
    // Numba writes an exception's message behind the second pointer; only the status is read.
    this.result = this.exports.malloc(8)
    this.error = this.exports.malloc(64)
  }

  get memory() { return this.exports.memory.buffer }

  /** A new array of zeros. @param {number[]} shape @param {"f8" | "i8"} [type] @returns {NDArray} */
  zeros(shape, type = "f8") {
    const n = Math.max(size(shape), 1)
    const pointer = this.exports.malloc(8 * n)
    if (!pointer) throw new Error("There is not enough memory for an array of this size.")
    new Uint8Array(this.memory, pointer, 8 * n).fill(0)
    return { pointer, shape, type }
  }

  /** @param {Packed} packed @returns {NDArray} */
  unpack(packed) {
    const out = this.zeros(packed.shape, packed.type)
    new Uint8Array(this.memory, out.pointer, 8 * size(packed.shape)).set(new Uint8Array(numbersOf(packed).buffer))
    if (packed.normals) this._draw(out, packed.normals)
    return out
  }

  /** Draw the random numbers of an array. @param {NDArray} array @param {Normals} normals */
  _draw(array, { seed, skipped, first, n, signs }) {
    const rng = this.seeded(seed)
    const drawn = this.zeros([skipped + n])
    this.call("draw_normals", { rng, out: drawn })
    const [numbers, random, bits] = [this.view(array), this.view(drawn), bytesOf(signs)]
    // Those of the tails stand in the file.
    for (let i = 0; i < n; i++) if (!numbers[first + i]) numbers[first + i] = (bits[i >> 3] >> (i & 7)) & 1 ? -random[skipped + i] : random[skipped + i]
    this.free(drawn)
    this.exports.free(rng)
  }

  /** @param {number[] | Float64Array} values @param {number[]} [shape] @returns {NDArray} */
  array(values, shape = [values.length]) {
    const out = this.zeros(shape)
    this.view(out).set(values)
    return out
  }

  /** @param {NDArray[]} arrays */
  free(...arrays) { for (const array of arrays) this.exports.free(array.pointer) }

  /** The numbers of an array, valid until the memory grows. @param {NDArray} array @returns {Float64Array} */
  view(array) { return new Float64Array(this.memory, array.pointer, size(array.shape)) }

  /** @param {NDArray} array @returns {BigInt64Array} */
  integers(array) { return new BigInt64Array(this.memory, array.pointer, size(array.shape)) }

  /** A generator with NumPy's stream of this seed, as a pointer. @param {number} seed @returns {number} */
  seeded(seed) { return this.exports.seeded(BigInt(seed)) }

  /** A generator of a child of NumPy's SeedSequence(seed). @param {number} seed @param {number} child from 0 @returns {number} */
  spawned(seed, child) { return this.exports.spawned(BigInt(seed), child) }

  /** The place of a compiled function in the table. @param {string} name */
  address(name) {
    const symbol = this.exports[name]
    if (symbol === undefined) throw new Error(`This file has no ${name}.`)
    return new Uint32Array(this.memory, symbol.value, 1)[0]
  }

  /** Call a compiled function, or a function of the same type, with its arguments by name.
   * @param {string} key @param {Record<string, any>} values @param {string} [name]
   * @returns {any} a number, or undefined */
  call(key, values, name = this.signatures[key].name) {
    const { arguments: list, result } = this.signatures[key]
    /** @type {any[]} */
    const flat = [this.result, this.error]
    this._flatten(list, values, flat)
    const status = this.exports.__indirect_function_table.get(this.address(name))(...flat)
    if (status !== 0) throw new Error(`${name} ended with status ${status}.`)
    if (result === "int64") return Number(new BigInt64Array(this.memory, this.result, 1)[0])
    return result === "float64" ? new Float64Array(this.memory, this.result, 1)[0] : undefined
  }

  /** @param {Arguments} list @param {Record<string, any>} values @param {any[]} out */
  _flatten(list, values, out) {
    for (const [name, kind] of list) {
      const value = values[name]
      if (value === undefined) throw new Error(`The argument ${name} is missing.`)
      if (Array.isArray(kind)) this._flatten(kind, value, out)
      else if (kind === "array" || kind === "borrowed") this._flattenArray(value, kind === "borrowed", out)
      else if (kind === "function") {
        // The address for C, the object of Python, and the compiled function.
        const at = this.address(value)
        out.push(at, 0, at)
      } else if (kind === "generator") out.push(0, 0n, BigInt(value), ...this.generator, 0n, 0, 0)
      else if (kind === "int64") out.push(BigInt(value))
      else out.push(Number(value))
    }
  }

  /** @param {NDArray} array @param {boolean} borrowed @param {any[]} out */
  _flattenArray({ pointer, shape }, borrowed, out) {
    const sizes = shape.map((n) => BigInt(n))
    if (borrowed) {
      out.push(pointer, ...sizes)
      return
    }
    const strides = []
    let stride = 8n
    for (let i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride
      stride *= sizes[i]
    }
    out.push(0, 0, BigInt(size(shape)), 8n, pointer, ...sizes, ...strides)
  }
}
