// The start page of a course: the progress that the browser has stored for each lesson.

import { progress, read } from "../progress.js"

const listed = JSON.parse(document.getElementById("lessons")?.textContent ?? "[]")
const known = read()
for (const lesson of listed) {
  const { done, said } = progress(known, lesson)
  const line = document.getElementById(`done-${lesson.key}`)
  if (line) line.textContent = done ? `✓ ${said}` : said
}
