// The start page of a course: the progress that the browser has stored for each lesson.

import { progress, read } from "../progress.js"

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
const listed = JSON.parse(document.getElementById("lessons")?.textContent ?? "[]")
const known = read()
for (const lesson of listed) {
  const { done, said } = progress(known, lesson)
  const line = document.getElementById(`done-${lesson.key}`)
  if (line) line.textContent = done ? `✓ ${said}` : said
}

const button = document.getElementById("keep")
const said = document.getElementById("kept")
// A page from a disk has no service worker, and needs none.
if (button && said && /^https?:$/.test(location.protocol) && navigator.serviceWorker) {
  document.head.append(Object.assign(document.createElement("link"), { rel: "manifest", href: "site.webmanifest" }))
  button.hidden = false
  button.onclick = async () => {
    said.textContent = "Saving the course on this device …"
    try {
      const registration = await navigator.serviceWorker.register("offline.js")
      // A new site has a new worker, which knows its files. Without a network the one before stays.
      await registration.update().catch(() => {})
      const worker = registration.installing ?? registration.waiting ?? registration.active
      while (worker && worker.state !== "activated" && worker.state !== "redundant") await new Promise((done) => worker.addEventListener("statechange", done, { once: true }))
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = ({ data }) => { said.textContent = data ? `This browser could not save the files: ${data}` : "The whole course is on this device. It also opens without a network." }
      worker?.postMessage("keep", [port2])
    } catch (error) {
      said.textContent = `This browser could not save the files: ${error instanceof Error ? error.message : error}`
    }
  }
}
