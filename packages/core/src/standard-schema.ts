/*
 * This file restates the parts of the Standard Schema interfaces that `defineTool` uses. The specification asks
 * libraries to do so where they want no dependency: a schema of zod, valibot or arktype fits by its shape alone.
 */

/** Matches a schema of any library that follows the Standard Schema specification. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  /** Holds what the specification defines. */
  readonly "~standard": StandardSchemaProps<Input, Output>;
}

/** Holds the members that the specification requires. */
interface StandardSchemaProps<Input = unknown, Output = Input> {
  /** States the version of the specification. */
  readonly version: 1;
  /** Names the library. */
  readonly vendor: string;
  /** The member exists for the compiler only. */
  readonly types?:
    | {
        /** Types the value before the check. */
        readonly input: Input;
        /** Types the value after the check. */
        readonly output: Output;
      }
    | undefined;
  /** Checks a value, and returns it in the schema's own form. */
  readonly validate: (
    value: unknown,
    options?: { readonly libraryOptions?: Record<string, unknown> | undefined },
  ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
}

/** Returns the value, or the problems that were found. */
type StandardSchemaResult<Output> =
  | {
      /** The value has the schema's own form, which may differ from the input. */
      readonly value: Output;
      /** A valid value has no problems. */
      readonly issues?: undefined;
    }
  | {
      /** Lists the problems of the value. */
      readonly issues: readonly StandardSchemaIssue[];
    };

/** Describes one problem of a value. */
export interface StandardSchemaIssue {
  /** Describes the problem for people. */
  readonly message: string;
  /** The path leads from the outside to the part that does not fit. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Types the value that a schema returns. */
export type StandardSchemaOutput<Schema extends StandardSchemaV1> = NonNullable<Schema["~standard"]["types"]>["output"];

/** Newer versions of the libraries create JSON Schema by themselves through this member. */
export interface StandardJsonSchemaProps {
  readonly jsonSchema: {
    readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  };
}
