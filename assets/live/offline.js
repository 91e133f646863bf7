// The service worker of a site: a reader who keeps the course has it without a network, too.

/** @type {any} */
const scope = self
/** One address may have several sites. */
const NAME = `sgmcmc-lab ${scope.registration.scope}`
/** The files of the site, which its maker puts here. @type {string[]} */
const FILES = []

/** Keep every file of the site, and then no other: until all have come, those of before stay. @param {MessagePort} port */
const keep = async (port) => {
  try {
    const cache = await caches.open(NAME)
    await cache.addAll(FILES.map((name) => new Request(name, { cache: "reload" })))
    const addresses = FILES.map((name) => new URL(name, scope.registration.scope).href)
    for (const request of await cache.keys()) if (!addresses.includes(request.url)) await cache.delete(request)
    port.postMessage("")
  } catch (error) {
    port.postMessage(String(error instanceof Error ? error.message : error))
  }
}

/** The network's file, or the kept one. @param {Request} request */
const answered = async (request) => {
  try {
    return await fetch(request)
  } catch (error) {
    const kept = await (await caches.open(NAME)).match(request)
    if (kept) return kept
    throw error
  }
}

scope.addEventListener("install", () => scope.skipWaiting())
scope.addEventListener("message", (/** @type {any} */ event) => event.waitUntil(keep(event.ports[0])))
scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(scope.clients.claim()))
scope.addEventListener("fetch", (/** @type {any} */ event) => { if (event.request.method === "GET") event.respondWith(answered(event.request)) })
