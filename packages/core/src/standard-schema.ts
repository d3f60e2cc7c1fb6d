/*
 * The parts of the Standard Schema interfaces that `defineTool` uses. The specification asks libraries to restate them
 * where they want no dependency: a schema of zod, valibot or arktype fits by its shape alone.
 */

/** A schema whose library implements Standard Schema, such as zod, valibot and arktype. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": StandardSchemaProps<Input, Output>;
}

/** What a schema says of itself, and how it checks a value. */
interface StandardSchemaProps<Input = unknown, Output = Input> {
  readonly version: 1;
  /** The library, such as `zod`. */
  readonly vendor: string;
  /** Exists for the compiler only. */
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  readonly validate: (
    value: unknown,
    options?: { readonly libraryOptions?: Record<string, unknown> | undefined },
  ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
}

type StandardSchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardSchemaIssue[] };

/** Why a value does not fit. */
export interface StandardSchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The value that a schema gives after checking. */
export type StandardSchemaOutput<Schema extends StandardSchemaV1> = NonNullable<Schema["~standard"]["types"]>["output"];

/** What newer versions of the libraries add: they make JSON Schema by themselves. */
export interface StandardJsonSchemaProps {
  readonly jsonSchema: {
    readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  };
}
