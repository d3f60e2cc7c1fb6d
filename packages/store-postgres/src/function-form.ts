import { flush } from "./statement-settings.ts";

/** How a step of the schema words the functions of an append and a save. */
export interface FunctionForm {
  readonly create: string;
  /** Behind LANGUAGE and VOLATILE. */
  readonly options: string;
  /** Whether a write that is to reach the disk does so whatever the connection is set to. */
  readonly isFlushing: boolean;
}

/** Of the first step. */
export const firstForm: FunctionForm = { create: "CREATE FUNCTION", options: "", isFlushing: false };

/** PL/pgSQL that makes the commit wait for the disk, or for nothing. */
export function setFlush(isFlushed: string): string {
  return `  IF ${isFlushed} THEN
    ${flush}
  ELSIF current_setting('synchronous_commit') <> 'off' THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;`;
}
