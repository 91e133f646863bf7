// Writing arrays into the data sources of Bokeh's glyphs, and into ranges.

/** A source or range by its id: its columns, the operation of a frame, and the number of rows that stay.
 * `names`: the possible values of a text.
 * @typedef {{id: string, columns: string[], operation: string, rollover: number, names?: string[]}} Feed */

/** @param {string} id @returns {any} */
export const find = (id) => {
  // @ts-ignore BokehJS loads after the page's own script.
  for (const document of globalThis.Bokeh?.documents ?? []) {
    const found = document.get_model_by_id(id)
    if (found) return found
  }
  return null
}

/** @param {ArrayLike<number>} old @param {Float64Array} fresh @param {number} rollover */
const append = (old, fresh, rollover) => {
  const length = Math.min(old.length + fresh.length, rollover)
  const out = new Float64Array(length)
  const kept = length - fresh.length
  for (let i = 0; i < kept; i++) out[i] = old[old.length - kept + i]
  out.set(kept < 0 ? fresh.subarray(-kept) : fresh, Math.max(kept, 0))
  return out
}

/** @param {any} model @param {Feed} feed @param {Float64Array[]} parts */
export const put = (model, { columns, operation, rollover, names }, parts) => {
  if (operation === "range") {
    model.setv({ start: parts[0][0], end: parts[0][1] })
    return
  }
  if (operation === "text") {
    model.setv({ text: names?.[parts[0][0]] })
    return
  }
  const data = { ...model.data }
  columns.forEach((name, i) => {
    data[name] = operation === "stream" ? append(data[name], parts[i], rollover) : parts[i]
  })
  // A server already has these data.
  model.setv({ data }, { sync: false })
}

/** Empty a stream. @param {any} model @param {Feed} feed */
export const empty = (model, { columns, operation }) => {
  if (operation === "stream") model.setv({ data: { ...model.data, ...Object.fromEntries(columns.map((name) => [name, new Float64Array(0)])) } }, { sync: false })
}

/** How much of a step's parts is there after so many seconds, and whether more follows: columns in pairs x0, x1 are the
 * ends of rows, as app/views/steps.py says. @param {Record<string, ArrayLike<number>>} rows @param {string[]} names @param {number} t */
export const grown = (rows, names, t) => {
  const { begin, end } = rows
  const share = Array.from(begin, (from, i) => (t >= end[i] ? 1 : Math.max(0, (t - from) / Math.max(end[i] - from, 1e-6))))
  const seen = [...share.keys()].filter((i) => share[i] > 0)
  /** @type {Record<string, any>} */
  const data = {}
  for (const name of Object.keys(rows)) data[name] = Float64Array.from(seen, (i) => rows[name][i])
  for (const name of Object.keys(rows).filter((one) => one.endsWith("1"))) {
    const from = data[`${name.slice(0, -1)}0`]
    data[name].forEach((/** @type {number} */ to, /** @type {number} */ k) => { data[name][k] = from[k] + share[seen[k]] * (to - from[k]) })
  }
  // The arrow that was drawn last has its name beside it; with all of them there is no room.
  const name = (/** @type {number} */ k) => (k === seen.length - 1 ? names[data.kind[k]] : "")
  data.after = seen.map((_, k) => (data.left[k] ? "" : name(k)))
  data.before = seen.map((_, k) => (data.left[k] ? name(k) : ""))
  return { data, more: share.some((one) => one < 1) }
}

/** @type {Record<string, any>} */
const KINDS = { float64: Float64Array, float32: Float32Array, int32: Int32Array, uint8: Uint8Array, uint32: Uint32Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array }

/** A property's value from a document of Bokeh. `old` is the previous value: its two-dimensional arrays have a special class.
 * @param {any} value @param {any} old @returns {any} */
export const decoded = (value, old) => {
  if (Array.isArray(value)) return value.map((part, i) => decoded(part, old?.[i]))
  if (value === null || typeof value !== "object") return value
  if (value.type === "map") return { ...old, ...Object.fromEntries(value.entries.map((/** @type {any} */ [name, part]) => [name, decoded(part, old?.[name])])) }
  if (value.type === "number") return Number(value.value.replace("inf", "Infinity"))
  if (value.type === "ndarray" && Array.isArray(value.array)) return value.array
  if (value.type === "ndarray") {
    const numbers = new KINDS[value.dtype](value.array.data.buffer)
    return value.shape.length > 1 ? new old.constructor(numbers, value.shape) : numbers
  }
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== "type").map(([name, part]) => [name, decoded(part, old?.[name])]))
}
