import { Worker } from "node:worker_threads";
import { abortedBefore } from "@throughline/core/internal";
import type Database from "better-sqlite3";
import { driverPath } from "./load-driver.ts";
import { defaultDriver } from "./connection.ts";
import type { SqliteDriver } from "./connection.ts";
import { closeDatabase } from "./open-connection.ts";
import { nativeCode, storeError } from "./sqlite-errors.ts";
import { sizeOf } from "./store-file.ts";

export interface CheckOrder {
  readonly path: string;
  readonly mostAnswers: number;
  /** States whether the references between the tables are checked too. */
  readonly references: boolean;
}

/** Holds the answers of one statement of the check, and the error that ended it early. */
interface Said {
  readonly answers: readonly string[];
  readonly failure: { readonly code: string; readonly message: string } | null;
}

type CheckAnswer = { readonly said: readonly Said[] } | { readonly failure: NonNullable<Said["failure"]> };

/** A smaller file is checked in this thread, because that takes less time than the start of a thread. */
const smallBytes = 8 * 1024 * 1024;

/**
 * The code of the thread is text, because a bundler leaves out a file that is only named by its URL. It does the same
 * as `saidOf`, and `wrongOf` reads the answers of both.
 */
const threadText: string = [
  'const { parentPort, workerData } = require("node:worker_threads");',
  'const failureOf = (error) => ({ code: String(error.code ?? ""), message: String(error) });',
  "function answer({ driver, path, statements }) {",
  "  let database;",
  "  try {",
  "    database = new (require(driver))(path, { readonly: true, fileMustExist: true, timeout: 50 });",
  "    return { said: statements.map((sql) => {",
  "      const answers = [];",
  "      try {",
  "        for (const text of database.prepare(sql).pluck().iterate()) answers.push(text);",
  "        return { answers, failure: null };",
  "      } catch (error) {",
  "        return { answers, failure: failureOf(error) };",
  "      }",
  "    }) };",
  "  } catch (error) {",
  "    return { failure: failureOf(error) };",
  "  } finally {",
  "    database?.close();",
  "  }",
  "}",
  "parentPort.postMessage(answer(workerData));",
].join("\n");

/**
 * Returns what SQLite finds wrong with the pages of a file and the references between its tables. The check reads the
 * whole file without a pause, so a large file is read in a thread. A driver of the caller cannot be sent there. Damage
 * that ends the check early is one of its answers.
 * @throws {ThroughlineError} ABORTED, STORE_CORRUPT and the other errors of opening a database
 */
export async function checkPages(
  order: CheckOrder,
  driver: SqliteDriver,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const { path } = order;
  if (driver === defaultDriver && sizeOf(path) > smallBytes) return checkInThread(order, signal);
  try {
    return checkNow(order, driver);
  } catch (error) {
    throw storeError(error, path);
  }
}

function checkNow({ path, mostAnswers, references }: CheckOrder, driver: SqliteDriver): string[] {
  const database = driver(path, { readonly: true, fileMustExist: true, timeout: 50 });
  try {
    return checkDatabase(database, { mostAnswers, references });
  } finally {
    closeDatabase(database);
  }
}

/** Runs the same check over an open connection. */
export function checkDatabase(
  database: Database.Database,
  { mostAnswers, references }: Omit<CheckOrder, "path">,
): string[] {
  return wrongOf(statementsOf({ mostAnswers, references }).map((sql) => saidOf(database, sql)));
}

function statementsOf({ mostAnswers, references }: Omit<CheckOrder, "path">): string[] {
  return [`PRAGMA integrity_check(${mostAnswers})`, ...(references ? ["PRAGMA foreign_key_check"] : [])];
}

/** @throws the error that ended a statement for another reason than damage */
function wrongOf([pagesSaid, referencesSaid]: readonly Said[]): string[] {
  const pages = answersOf(pagesSaid, "the check of its pages");
  const stray = answersOf(referencesSaid, "the check of its references");
  return [
    ...pages.filter((text) => text !== "ok"),
    ...new Set(stray.map((text) => (text.includes(" ") ? text : `${text} holds rows of sessions that are gone`))),
  ];
}

/** Returns the answers of a statement. The damage that ended the statement early is the last answer. */
function answersOf(said: Said | undefined, what: string): readonly string[] {
  if (said === undefined) return [];
  const { answers, failure } = said;
  if (failure === null) return answers;
  // A file that is no database has no pages that could be checked.
  if (!failure.code.startsWith("SQLITE_CORRUPT"))
    throw Object.assign(new Error(failure.message), { code: failure.code });
  return [...answers, `${what} ended early: ${failure.message}`];
}

function saidOf(database: Database.Database, sql: string): Said {
  const answers: string[] = [];
  try {
    for (const text of database.prepare<[], string>(sql).pluck().iterate()) answers.push(text);
    return { answers, failure: null };
  } catch (error) {
    return { answers, failure: { code: nativeCode(error), message: String(error) } };
  }
}

/**
 * Rejects at once when the caller aborts. The thread then ends by itself, because ending it inside the code of SQLite
 * would end the process.
 */
function checkInThread(order: CheckOrder, signal: AbortSignal | undefined): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(abortedBefore("the check was done", signal));
    if (signal?.aborted === true) return aborted();
    signal?.addEventListener("abort", aborted, { once: true });
    const { path } = order;
    const workerData = { path, statements: statementsOf(order), driver: driverPath() };
    const thread = new Worker(threadText, { eval: true, workerData });
    thread.once("message", (answer: CheckAnswer) => {
      if ("failure" in answer) return reject(storeError(answer.failure, path));
      try {
        resolve(wrongOf(answer.said));
      } catch (error) {
        reject(storeError(error, path));
      }
    });
    thread.once("error", (error) => reject(storeError(error, order.path)));
    thread.once("exit", (code) => {
      signal?.removeEventListener("abort", aborted);
      reject(storeError(new Error(`the thread that checks ended with ${code}`), order.path));
    });
  });
}
