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
