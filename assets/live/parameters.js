// Parameters of a sampler, a gradient or a target, and the description for their values.

/** @typedef {{name: string, label: string, doc: string, kind: string, bounds: [number, number] | null, log: boolean, options: any[]}} Parameter */
/** @typedef {{places?: Array<Array<string | number>>, stops?: Array<[any, any]>}} Variation */
/** A sampler, gradient or target with its values. `base` is the description at `first`.
 * @typedef {{key: string, title: string, first: Record<string, any>, base: any, parameters: Parameter[], variations: Record<string, Variation>, texts: Record<string, string>}} Choice */

/** The description of a choice with these values. A parameter that moves over stops brings the description of its stop;
 * the other values are written to their places in it.
 * @param {Choice} choice @param {Record<string, any>} values */
export const described = ({ first, base, variations }, values) => {
  const entries = Object.entries(variations)
  const moved = entries.find(([name, { stops }]) => stops && values[name] !== first[name])
  const out = structuredClone(moved ? moved[1].stops?.find(([value]) => value === values[moved[0]])?.[1] ?? base : base)
  for (const [name, { places }] of entries) {
    for (const path of places ?? []) {
      const last = path[path.length - 1]
      let node = out
      for (const key of path.slice(0, -1)) node = node[key]
      node[last] = typeof values[name] === "boolean" ? Number(values[name]) : values[name]
    }
  }
  return out
}

/** The values that a slider has: its stops, or 200 places from end to end. @param {Parameter} parameter @param {Variation} variation */
export const scaleOf = ({ bounds, log, kind }, { stops }) => {
  if (stops) {
    const values = stops.map(([value]) => value)
    return { last: values.length - 1, at: (/** @type {number} */ i) => values[i], place: (/** @type {any} */ x) => Math.max(values.indexOf(x), 0) }
  }
  const [low, high] = bounds ?? [0, 1]
  const whole = kind === "count"
  const last = whole && high - low <= 200 && !log ? high - low : 200
  const [from, to] = log && low > 0 ? [Math.log(low), Math.log(high)] : [low, high]
  const at = (/** @type {number} */ i) => {
    const raw = from + ((to - from) * i) / last
    const value = log && low > 0 ? Math.exp(raw) : raw
    const rounded = whole ? Math.round(value) : Number(value.toPrecision(3))
    return Math.min(Math.max(rounded, low), high)
  }
  const place = (/** @type {number} */ x) => Math.round(((((log && low > 0 ? Math.log(x) : x) - from) / (to - from)) * last))
  return { last, at, place }
}

/** A choice as a link to the lab writes it: its key and all values. @param {Choice} choice @param {Record<string, any>} values */
export const written = ({ key, texts }, values) => {
  const said = Object.entries(texts).map(([name, text]) => `${name}:${name in values ? values[name] : text}`)
  return said.length ? `${key}(${said.join(";")})` : key
}

/** A choice in a link: its key, and its values as text; the inverse of `written`. @param {string} text @returns {{key: string, values: Record<string, string>}} */
export const choiceIn = (text) => {
  const [, key, inside] = /** @type {RegExpMatchArray} */ (text.match(/^([^(]*)\(?([^]*?)\)?$/))
  const parts = inside.split(";").filter(Boolean).map((part) => [part.split(":", 1)[0], part.slice(part.indexOf(":") + 1)])
  return { key, values: Object.fromEntries(parts) }
}

/** The value of a link's text, with the type of `like`. @param {string} text @param {any} like */
export const read = (text, like) => (typeof like === "boolean" ? { true: true, false: false }[text] : typeof like === "number" ? Number(text || NaN) : text)

/** Whether two texts give the same value, as 1.0 and 1 do. @param {string} one @param {string} [other] */
export const alike = (one, other) => one === other || (one.trim() !== "" && Number(one) === Number(other))
