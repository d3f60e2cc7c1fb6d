import { plainLayout, type Layout } from "./layout.ts";
import { flush } from "./statement-settings.ts";

/** How a step of the schema words the functions of an append and a save. */
export interface FunctionForm {
  readonly create: string;
  /** Behind LANGUAGE and VOLATILE. */
  readonly options: string;
  /** Whether a write that is to reach the disk does so whatever the connection is set to. */
  readonly isFlushing: boolean;
  /** Whether servers that pass statements on to others understand the wording, and the table gives a session its number. */
  readonly isPortable: boolean;
  readonly layout: Layout;
  /** Whether an append refuses a patch that makes the entry too large. */
  readonly isBounded: boolean;
}

/** Of the first step. */
export const firstForm: FunctionForm = {
  create: "CREATE FUNCTION",
  options: "",
  isFlushing: false,
  isPortable: false,
  layout: plainLayout,
  isBounded: false,
};

/** The database's clock where a statement changes rows of the table `row`. */
export function rowClock(schema: string, { isPortable }: FunctionForm, row: string): string {
  return isPortable ? `${schema}.row_now_ms(${row}.session_no)` : `${schema}.store_now_ms()`;
}

/** PL/pgSQL that makes the commit wait for the disk, or for nothing. */
export function setFlush(isFlushed: string): string {
  return `  IF ${isFlushed} THEN
    ${flush}
  ELSIF current_setting('synchronous_commit') <> 'off' THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;`;
}
