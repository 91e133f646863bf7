// The host in a worker.

import { Host } from "./host.js"

// @ts-ignore
const host = new Host((message, transfer) => self.postMessage(message, transfer ?? []))
self.onmessage = ({ data }) => host.receive(data)
