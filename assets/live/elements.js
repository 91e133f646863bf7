// Elements of the page.

/** A new element with properties and children.
 * @param {string} tag @param {Record<string, any>} [properties] @param {Array<Node | string>} children */
export const make = (tag, properties = {}, ...children) => {
  const out = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name in out) /** @type {any} */ (out)[name] = value
    else out.setAttribute(name, value)
  }
  out.append(...children)
  return out
}
