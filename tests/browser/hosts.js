// A page that makes runs in the WebAssembly host, and hands over everything that they hold.

import { Claims, liveResult, markOf } from "./claims.js"
import { Engine } from "./engine.js"
import { Run } from "./run.js"
import { Sweep } from "./sweeps.js"
import { Truth } from "./truth.js"

const FIELDS = ["steps", "countedFrom", "divergence", "gradients", "dataSeen", "nSteps", "nDraws", "acceptance", "clipped", "temperature", "thermostat"]
/** Arrays of a run that its description gives, and no step changes. */
const GIVEN = ["params", "target_params", "estimate_params", "shape", "centre", "factor", "limits"]
const modules = new Map()

async function engineOf(name, signatures) {
  if (!modules.has(name)) modules.set(name, await WebAssembly.compileStreaming(fetch(name)))
  return new Engine(await WebAssembly.instantiate(modules.get(name), {}), signatures)
}

/** @param {Uint8Array} bytes @returns {string} */
function base64(bytes) {
  if (bytes.toBase64) return bytes.toBase64()
  let text = ""
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192))
  return btoa(text)
}

/** The bytes in base64 without the zeros at their end, most of a running statistic. */
function packed(engine, array) {
  const words = engine.integers(array)
  let n = words.length
  while (n && words[n - 1] === 0n) n--
  const bytes = new Uint8Array(words.buffer, array.pointer, 8 * n)
  return { shape: array.shape, type: array.type, data: base64(bytes) }
}

function held(run) {
  const arrays = {}
  for (const [name, array] of Object.entries({ ...run.arrays, ...run.sums })) if (!GIVEN.includes(name)) arrays[name] = packed(run.engine, array)
  const fields = {}
  for (const name of FIELDS) fields[name] = run[name]
  return { arrays, fields }
}

/** A run in this memory, with its moves: steps to make, a change, or "held", to hand over what there is. */
function moved(engine, constants, { description, moves }, found) {
  const run = new Run(engine, constants, description)
  for (const move of moves) {
    if (move === "held") found.push(held(run))
    else if (typeof move === "number") run.advance(move)
    else run.change(move)
  }
  run.free()
}

/** Runs of one module, each in a memory of its own. */
async function* made({ module, signatures, constants, jobs }) {
  for (const job of jobs) {
    const found = []
    let error = ""
    try {
      moved(await engineOf(module, signatures), constants, job, found)
    } catch (problem) {
      error = String(problem.stack ?? problem)
    }
    yield { found, error }
  }
}

/** The size of the memory in bytes after each of these runs, which share one. */
async function* sizes({ module, signatures, constants, jobs }) {
  const engine = await engineOf(module, signatures)
  for (const job of jobs) {
    moved(engine, constants, job, [])
    yield engine.memory.byteLength
  }
}

/** The first numbers of the streams of some seeds: of 64 bits, of 32, and doubles, as texts. */
async function* streams({ module, signatures, seeds, n }) {
  const engine = await engineOf(module, signatures)
  const table = engine.exports.__indirect_function_table
  for (const seed of seeds)
    yield engine.generator.map((place) => {
      const rng = BigInt(engine.seeded(seed))
      return Array.from({ length: n }, () => {
        const number = table.get(Number(place))(rng)
        return String(typeof number === "bigint" ? BigInt.asUintN(64, number) : Number.isInteger(number) ? number >>> 0 : number)
      })
    })
}

/** What claims say of the runs of a step after so many steps, and what the runs hold then. */
async function* claimed({ module, signatures, constants, jobs }) {
  for (const { lanes, claims, poisson, lengths } of jobs) {
    const engine = await engineOf(module, signatures)
    const records = lanes.map((lane) => ({ run: new Run(engine, constants, lane), truth: new Truth(engine, lane.target.truth) }))
    const kept = new Claims(engine, { claims, poisson })
    const found = []
    for (const n of lengths) {
      for (const { run } of records) run.advance(n - run.steps)
      const results = kept.claims.map((claim) => {
        const live = liveResult(claim, records, kept.poisson)
        const { measured, error, allowed, chance, expected, passed, reason } = live.result ?? {}
        // JSON has no numbers that are not finite.
        const numbers = [measured, error, allowed, chance].map((x) => (typeof x === "number" ? String(x) : null))
        return { ...live, numbers, expected, passed, reason, mark: markOf(claim, live, kept.same) }
      })
      found.push({ runs: records.map(({ run }) => held(run)), results })
    }
    yield found
  }
}

/** Sweeps from their first run to their last, and the size of the memory after each. */
async function* swept({ module, signatures, constants, jobs }) {
  const engine = await engineOf(module, signatures)
  for (const { given, target } of jobs) {
    const sweep = new Sweep(engine, constants, target, null, given)
    const before = sweep.marks()
    while (sweep.go());
    const found = { rows: sweep.rows, before, marks: sweep.marks(), drawn: sweep.drawn() }
    sweep.end()
    yield { ...found, bytes: engine.memory.byteLength }
  }
}

const all = { made, sizes, streams, claimed, swept }

/** Fetch what is asked of one of these functions, and hand over each thing that it yields. @param {keyof typeof all} name */
async function answer(name) {
  const asked = await (await fetch("asked")).json()
  for await (const each of all[name](asked)) {
    await fetch("answers", { method: "POST", body: new Blob([JSON.stringify(each)]) })
  }
}

globalThis.live = { answer }
