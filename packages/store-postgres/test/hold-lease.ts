// Takes a job, says so, and works on it until it is killed.
import process from "node:process";
import { createPostgresStore } from "@throughline/store-postgres";

const [url = "", schema = "", name = "", leaseText = "1000"] = process.argv.slice(2);
const store = createPostgresStore({ url, schema, maxConnections: 1, notify: false });
const lease = await store.leases.acquire(name, { owner: `node ${process.pid}`, leaseMs: Number(leaseText) });
process.stdout.write(`${JSON.stringify(lease)}\n`);
setInterval(() => undefined, 1000);
