// A page that makes runs in the WebAssembly host, and hands over everything that they hold.

import { Claims, liveResult, markOf } from "./claims.js"
import { Engine } from "./engine.js"
import { Run } from "./run.js"
import { SeparateRuns } from "./separate.js"
import { Sweep } from "./sweeps.js"
import { Truth } from "./truth.js"

const FIELDS = ["steps", "countedFrom", "divergence", "gradients", "dataSeen", "nSteps", "nDraws", "acceptance", "clipped", "temperature", "thermostat", "total", "meanWeight", "whyWeighted"]
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

/** The first numbers of 64 bits of the first n children of a seed, as texts. */
async function* children({ module, signatures, seed, n }) {
  const engine = await engineOf(module, signatures)
  const next = engine.exports.__indirect_function_table.get(Number(engine.generator[0]))
  for (let child = 0; child < n; child++) {
    const rng = BigInt(engine.spawned(seed, child))
    yield Array.from({ length: 4 }, () => String(BigInt.asUintN(64, next(rng))))
  }
}

/** A run's draws, and its auxiliary variables after every so many counted steps; 0: none. */
function recorded(engine, constants, lane, { every, draws }, length) {
  const { burn_in: burnIn, thin, n_chains: n } = lane
  const run = new Run(engine, constants, { ...lane, keep: draws ? Math.floor((length - burnIn) / thin) : 0 })
  const momenta = []
  run.advance(burnIn)
  for (let counted = every; every && burnIn + counted <= length; counted += every) {
    run.advance(every)
    momenta.push(...engine.view(run.arrays.momentum))
  }
  if (draws) run.advance(length - run.steps)
  const width = run.arrays.momentum.shape[1]
  const snapshots = engine.array(momenta, [width ? momenta.length / n / width : 0, n, width])
  const found = { kept: packed(engine, run.arrays.kept), momenta: packed(engine, snapshots) }
  engine.free(snapshots)
  run.free()
  return found
}

/** What claims say of the runs of a step after so many steps, and what the runs hold then; of some lanes, all their draws. */
async function* claimed({ module, signatures, constants, jobs }) {
  for (const { lanes, claims, poisson, lengths, followed } of jobs) {
    const engine = await engineOf(module, signatures)
    const records = lanes.map((lane) => ({ run: new Run(engine, constants, lane), truth: new Truth(engine, lane.target.truth) }))
    const kept = new Claims(engine, { claims, poisson })
    records.forEach(({ run }, i) => kept.follow(i, run))
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
    const others = lanes.map((lane, i) => followed[i] && recorded(engine, constants, lane, followed[i], lengths.at(-1)))
    yield { found, recorded: others }
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

/** The marks and numbers of claims on separate runs, before and after them, and the size of the memory then. */
async function* separate({ module, signatures, constants, jobs }) {
  const engine = await engineOf(module, signatures)
  for (const { claims, target } of jobs) {
    const runs = new SeparateRuns(engine, constants, target, claims)
    const before = runs.marks()
    while (runs.go());
    const numbers = claims.map(({ place }) => {
      const { measured, error } = runs.results.get(place)
      return [measured, error].map((x) => (typeof x === "number" ? String(x) : null))
    })
    yield { before, marks: runs.marks(), numbers, bytes: engine.memory.byteLength }
  }
}

const all = { made, sizes, streams, children, claimed, swept, separate }

/** Fetch what is asked of one of these functions, and hand over each thing that it yields. @param {keyof typeof all} name */
async function answer(name) {
  const asked = await (await fetch("asked")).json()
  for await (const each of all[name](asked)) {
    await fetch("answers", { method: "POST", body: new Blob([JSON.stringify(each)]) })
  }
}

globalThis.live = { answer }
