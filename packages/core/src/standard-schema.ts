/*
 * This file restates the parts of the Standard Schema interfaces that `defineTool` uses. The specification asks
 * libraries to do so where they want no dependency: a schema of zod, valibot or arktype fits by its shape alone.
 */

export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": StandardSchemaProps<Input, Output>;
}

interface StandardSchemaProps<Input = unknown, Output = Input> {
  readonly version: 1;
  readonly vendor: string;
  /** The member exists for the compiler only. */
  readonly types?:
    | {
        readonly input: Input;
        readonly output: Output;
      }
    | undefined;
  /** Checks a value, and returns it in the schema's own form. */
  readonly validate: (
    value: unknown,
    options?: { readonly libraryOptions?: Record<string, unknown> | undefined },
  ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
}

type StandardSchemaResult<Output> =
  | {
      /** The value has the schema's own form, which may differ from the input. */
      readonly value: Output;
      readonly issues?: undefined;
    }
  | {
      readonly issues: readonly StandardSchemaIssue[];
    };

export interface StandardSchemaIssue {
  readonly message: string;
  /** The path leads from the outside to the part that does not fit. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type StandardSchemaOutput<Schema extends StandardSchemaV1> = NonNullable<Schema["~standard"]["types"]>["output"];

/** Newer versions of the libraries create JSON Schema by themselves through this member. */
export interface StandardJsonSchemaProps {
  readonly jsonSchema: {
    readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  };
}
