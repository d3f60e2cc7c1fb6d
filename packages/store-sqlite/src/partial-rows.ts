import type { PartialReply } from "@throughline/core";
import type { KeptPayload } from "@throughline/store-kit/internal";
import type { Connection } from "./connection.ts";
import type { Session } from "./rows.ts";
import type { PartialRow } from "./statements.ts";

/** The open replies of sessions, one row each. A row goes with its session, because it refers to it. */
export class PartialRows {
  #hasDropped = false;

  write({ statements }: Connection, session: Session, { fence, turnId }: PartialReply, kept: KeptPayload): void {
    statements.writePartial.run(session, fence, turnId, kept);
  }

  find({ statements }: Connection, session: Session): PartialRow | undefined {
    return statements.findPartial.get(session);
  }

  /** Deletes the partial of a session up to a fence, because its reply is in the log by then. */
  deleteTo({ statements }: Connection, session: Session, fence: number): boolean {
    return statements.deletePartial.run(session, fence).changes > 0;
  }

  /** Deletes the partial of a session whose text must be gone for good. */
  drop(connection: Connection, session: Session): void {
    this.#hasDropped = this.deleteTo(connection, session, Number.MAX_SAFE_INTEGER) || this.#hasDropped;
  }

  /** Returns whether a partial was dropped since the last call, because the log of SQLite may still hold its text. */
  takeDropped(): boolean {
    const hadDropped = this.#hasDropped;
    this.#hasDropped = false;
    return hadDropped;
  }
}
