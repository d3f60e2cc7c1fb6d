// Writes docs/benchmarks.md and its pictures from one run: the race with the peers, growth of the stores, the gateway.
// node --conditions=@throughline/source lab/benchmarks/page.ts --write docs/benchmarks.md [--peers FOLDER] [--sizes 10,1000]
//   [--turns 300] [--rounds 3] [--from docs/images/benchmarks.json]
// The run takes about eight minutes on a quiet machine with the packages of the peers in the folder, and 3 GB of disk.
// `--from` draws again what an earlier run measured. Without `--write` the figures are printed.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { GatewayResult } from "../../benchmarks/gateway.ts";
import type { PeerClass } from "../../benchmarks/peers.ts";
import type { Growth } from "./page/growth.ts";
import type { Run } from "./page/run.ts";
import { pageOf, picturesOf } from "./page/text.ts";

const root = join(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    write: { type: "string" },
    from: { type: "string" },
    peers: { type: "string" },
    sizes: { type: "string", default: "10,100,1000,10000,100000,1000000" },
    turns: { type: "string", default: "300" },
    rounds: { type: "string", default: "3" },
  },
});

function run(program: string, args: readonly string[]): string {
  process.stderr.write(`${program} ${args.join(" ")}\n`);
  const options = ["--conditions=@throughline/source", "--expose-gc", join(root, program), ...args];
  return execFileSync(process.execPath, options, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

/** Each store in a folder of its own, which is gone before the next one is filled. */
function grow(folder: string): readonly Growth[] {
  return values.sizes.split(",").flatMap((records) =>
    ["sqlite", "jsonl"].map((kind) => {
      const store = mkdtempSync(join(folder, `${kind}-`));
      run("lab/benchmarks/page/growth.ts", ["fill", kind, store, records]);
      const measured = run("lab/benchmarks/page/growth.ts", ["measure", kind, store, records]);
      rmSync(store, { recursive: true, force: true });
      return JSON.parse(measured) as Growth;
    }),
  );
}

function measureAll(folder: string): Run {
  const beganMs = performance.now();
  const [peers, gateway] = [join(folder, "peers.json"), join(folder, "gateway.json")];
  const peersFolder = values.peers === undefined ? [] : [values.peers];
  run("benchmarks/peers.ts", [values.turns, values.rounds, ...peersFolder, "--json", peers]);
  // More calls than 80 in each way are over the rate of a token.
  run("benchmarks/gateway.ts", ["80", "--json", gateway]);
  const growth = grow(folder);
  const manifest = JSON.parse(readFileSync(join(root, "packages/core/package.json"), "utf8")) as { version: string };
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: {
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
      system: `${process.platform} ${process.arch}`,
      node: process.version,
    },
    version: manifest.version,
    turns: Number(values.turns),
    rounds: Number(values.rounds),
    minutes: (performance.now() - beganMs) / 60_000,
    peers: JSON.parse(readFileSync(peers, "utf8")) as readonly PeerClass[],
    growth,
    gateway: JSON.parse(readFileSync(gateway, "utf8")) as GatewayResult,
  };
}

const folder = mkdtempSync(join(tmpdir(), "throughline-page-"));
try {
  const measured =
    values.from === undefined ? measureAll(folder) : (JSON.parse(readFileSync(values.from, "utf8")) as Run);
  const text = `${JSON.stringify(measured, null, 2)}\n`;
  if (values.write === undefined) process.stdout.write(text);
  else {
    const images = join(dirname(values.write), "images");
    mkdirSync(images, { recursive: true });
    writeFileSync(join(images, "benchmarks.json"), text);
    for (const [name, picture] of picturesOf(measured)) writeFileSync(join(images, name), picture);
    writeFileSync(values.write, pageOf(measured));
    execFileSync(join(root, "node_modules/.bin/oxfmt"), [values.write, join(images, "benchmarks.json")]);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
