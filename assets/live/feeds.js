// Arrays into the data sources of Bokeh's glyphs, and into ranges.

/** A source or range by its id: its columns, what a frame does with it, and how many rows stay.
 * @typedef {{id: string, columns: string[], operation: string, rollover: number}} Feed */

/** @param {string} id @returns {any} */
export const find = (id) => {
  // @ts-ignore
  for (const document of Bokeh.documents) {
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
export const put = (model, { columns, operation, rollover }, parts) => {
  if (operation === "range") {
    model.setv({ start: parts[0][0], end: parts[0][1] })
    return
  }
  const data = { ...model.data }
  columns.forEach((name, i) => {
    data[name] = operation === "stream" ? append(data[name], parts[i], rollover) : parts[i]
  })
  model.data = data
}
