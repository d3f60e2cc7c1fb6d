import type { SessionAddress } from "@throughline/core/internal";
import {
  assertArgument,
  assertKnownOptions,
  optionKinds,
  type OptionKind,
  type OptionTable,
} from "@throughline/core/internal";
import type {
  DeleteSessionOptions,
  DeleteUserOptions,
  FindSessionOptions,
  ForkSessionOptions,
  OpenSessionOptions,
  RenameSessionOptions,
  SessionName,
  SessionQuery,
  SessionsUsageQuery,
} from "./sessions.ts";

const { filledText, flag, integer, listOf, number, objectOf, oneOf, required, signal, text } = optionKinds;

/** The types require a row for each option, so an option without a check does not compile. */
export const sessionsCalls: {
  readonly "sessions.open": OptionTable<OpenSessionOptions>;
  readonly "sessions.find": OptionTable<FindSessionOptions>;
  readonly "sessions.list": OptionTable<SessionQuery>;
  readonly "sessions.delete": OptionTable<DeleteSessionOptions>;
  readonly "sessions.deleteUser": OptionTable<DeleteUserOptions>;
  readonly "sessions.fork": OptionTable<ForkSessionOptions>;
  readonly "sessions.rename": OptionTable<RenameSessionOptions>;
  readonly "sessions.usage": OptionTable<SessionsUsageQuery>;
} = {
  "sessions.open": { create: flag, signal },
  "sessions.find": { signal },
  "sessions.list": {
    allAgents: flag,
    state: oneOf(["active", "archived", "any"]),
    keyPrefix: text,
    sinceMs: number(),
    untilMs: number(),
    sort: oneOf(["updated", "key"]),
    limit: integer({ min: 1, max: 1000 }),
    cursor: filledText,
    signal,
  },
  "sessions.delete": { purge: flag, waitMs: number({ min: 0 }), signal },
  "sessions.deleteUser": { dryRun: flag, waitMs: number({ min: 0 }), signal },
  "sessions.fork": {
    at: optionKinds.either(filledText, integer({ min: 1 })),
    key: filledText,
    label: text,
    signal,
  },
  "sessions.rename": { key: filledText, label: text, waitMs: number({ min: 0 }), signal },
  "sessions.usage": {
    by: listOf(oneOf(["day", "week", "month", "session", "model", "program", "folder", "agent"])),
    sinceMs: number(),
    untilMs: number(),
    timeZone: text,
    model: text,
    allAgents: flag,
    signal,
  },
};

/** @throws {ThroughlineError} INPUT_INVALID */
export function checkOptions(call: keyof typeof sessionsCalls, options: unknown, argument?: string): void {
  assertKnownOptions(call, options, sessionsCalls[call] as OptionTable<object>, argument);
}

const address: OptionTable<SessionAddress> = {
  key: required(text),
  agentId: text,
  namespace: text,
  archiveId: text,
};
const addressKind = objectOf(address);
const sessionName: OptionKind = { ...optionKinds.either(text, addressKind), expected: "a label, a key or an address" };

const user: OptionTable<{ readonly namespace?: string; readonly keyPrefix?: string }> = {
  namespace: text,
  keyPrefix: filledText,
};

/** @throws {ThroughlineError} INPUT_INVALID */
export function checkUser(call: string, given: unknown): void {
  assertKnownOptions(call, given, user, "user");
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function checkSessionName(call: string, name: unknown): asserts name is SessionName {
  assertArgument(call, "session", name, sessionName);
  // `either` does not check the fields inside of its kinds, so the address is checked here.
  if (typeof name !== "string") assertArgument(call, "session", name, addressKind);
}
