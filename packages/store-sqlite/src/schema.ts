import { schemaFive } from "./schema-five.ts";
import { schemaFour } from "./schema-four.ts";
import { schemaOne } from "./schema-one.ts";
import { schemaThree } from "./schema-three.ts";
import { schemaTwo } from "./schema-two.ts";

/** "Tlne": says in the file's header that it is a store of ours. */
export const applicationId = 0x546c6e65;

/** One step of the schema, from the version before it to `version`. */
export interface SchemaStep {
  readonly version: number;
  readonly sql: string;
}

/** Every step, oldest first. A step that was released is never changed: what is to be different is a step of its own. */
export const schemaSteps: readonly SchemaStep[] = [
  { version: 1, sql: schemaOne },
  { version: 2, sql: schemaTwo },
  { version: 3, sql: schemaThree },
  { version: 4, sql: schemaFour },
  { version: 5, sql: schemaFive },
];
