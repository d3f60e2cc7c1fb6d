import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { assertAgentId, assertNamespace, quote } from "./session-id.ts";
import { parseSessionKey } from "./session-key.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * The address of a session and the primary key of every table. `archiveId` addresses an archived session of the
 * key instead of the current one.
 */
export interface SessionRef {
  /** Separates tenants that share one store. The default is the empty text. */
  readonly namespace: string;
  /** The agent of the session. */
  readonly agentId: string;
  /** Opaque to stores. */
  readonly key: string;
  /** The session id of an archived session. Absent: the current session of the key. */
  readonly archiveId?: string;
}

/** The parts of a session's address; `sessionRef` fills in the rest. */
export interface SessionAddress {
  /** The session key, in any form. */
  readonly key: string;
  /** The agent of the session. @default the agent the key names, else "main" */
  readonly agentId?: string;
  /** The namespace of the session. @default "" */
  readonly namespace?: string;
  /** The session id of an archived session. Absent: the current session of the key. */
  readonly archiveId?: string;
}

const { any } = optionKinds;
// Each part has a code of its own; only names are refused here.
const addressTable: OptionTable<SessionAddress> = { key: any, agentId: any, namespace: any, archiveId: any };

/**
 * The address of a session. The agent comes from the key where the address names none.
 * @throws {ThroughlineError} INPUT_INVALID for a field that an address does not have; KEY_INVALID, KEY_AGENT_MISMATCH, AGENT_ID_INVALID, NAMESPACE_INVALID
 */
export function sessionRef(address: SessionAddress): SessionRef {
  assertKnownOptions<SessionAddress>("sessionRef", address, addressTable, "address");
  const named = parseSessionKey(address.key).agentId;
  const agentId = address.agentId ?? named ?? "main";
  assertAgentId(agentId);
  assertNamespace(address.namespace ?? "");
  if (named !== null && named !== agentId) {
    throw new ThroughlineError(
      "KEY_AGENT_MISMATCH",
      `The key ${quote(address.key)} belongs to agent ${quote(named)}, not to ${quote(agentId)}.`,
      { outcome: "not-applied", details: { key: address.key, keyAgentId: named, agentId } },
    );
  }
  const ref = { namespace: address.namespace ?? "", agentId, key: address.key };
  return address.archiveId === undefined ? ref : { ...ref, archiveId: address.archiveId };
}

/** One text per address, for maps. Not for people and not for paths. */
export function sessionRefText(ref: SessionRef): string {
  return JSON.stringify([ref.namespace, ref.agentId, ref.key, ref.archiveId ?? null]);
}
