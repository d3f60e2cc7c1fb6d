import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { createInstalledPostgres, type ServerProgram } from "./installed-postgres.ts";
import { freePort } from "../../../tools/free-port.ts";

/** A cluster on loopback: one coordinator, and workers that hold the shards. */
export interface CitusCluster {
  /** The database of the coordinator. */
  readonly url: string;
  readonly workerUrls: readonly string[];
  /** Returns what the servers have logged until now, the coordinator first. A line begins with its SQLSTATE. */
  logs(): readonly string[];
  stop(): Promise<void>;
}

interface ClusterOptions {
  /** The folder of `initdb` and `postgres`, with the extension. */
  readonly binaries: string;
  readonly workers: number;
  readonly shards: number;
}

interface Node {
  readonly server: ServerProgram;
  readonly port: number;
  readonly logFile: string;
}

/** The moves of shards need logical replication; transactions over nodes need prepared ones. */
const settings = [
  "shared_preload_libraries='citus'",
  "max_connections=300",
  "max_prepared_transactions=600",
  "wal_level=logical",
  "max_replication_slots=40",
  "max_wal_senders=40",
  "max_worker_processes=40",
  "max_logical_replication_workers=20",
  "max_sync_workers_per_subscription=4",
  "citus.node_conninfo='sslmode=disable'",
  "log_line_prefix='%e '",
].join("\n");

/** Starts the nodes in data folders of their own, which `stop` removes. */
export async function startCluster({ binaries, workers, shards }: ClusterOptions): Promise<CitusCluster> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-citus-"));
  chmodSync(folder, 0o711);
  const nodes: Node[] = [];
  const stop = async (): Promise<void> => {
    for (const { server } of nodes) await server.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  try {
    for (let index = 0; index <= workers; index++) {
      const node = await startNode(binaries, join(folder, index === 0 ? "coordinator" : `worker-${index}`), shards);
      nodes.push(node);
    }
    const [url = "", ...workerUrls] = nodes.map(({ port }) => urlOf(port));
    for (const each of [url, ...workerUrls]) await send(each, ["CREATE EXTENSION citus"]);
    await send(url, [
      `SELECT citus_set_coordinator_host('127.0.0.1', ${nodes[0]?.port})`,
      ...nodes.slice(1).map(({ port }) => `SELECT citus_add_node('127.0.0.1', ${port})`),
    ]);
    const logs = (): readonly string[] =>
      nodes.map(({ logFile }) => (existsSync(logFile) ? readFileSync(logFile, "utf8") : ""));
    return { url, workerUrls, logs, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

async function startNode(binaries: string, dataFolder: string, shards: number): Promise<Node> {
  const port = await freePort();
  const logFile = `${dataFolder}.log`;
  const server = createInstalledPostgres({
    binaries,
    dataFolder,
    port,
    password: "unused",
    // The nodes connect to each other without a password. They listen on loopback only.
    initdbFlags: ["--encoding=UTF8", "--no-locale", "-A", "trust"],
    settings: `${settings}\ncitus.shard_count=${shards}`,
    serverFlags: ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_wal_size=1GB"].flatMap((flag) => [
      "-c",
      flag,
    ]),
    note: (text) => appendFileSync(logFile, text),
  });
  await server.initialise();
  await server.start();
  return { server, port, logFile };
}

async function send(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
