// Functions that the packages of Throughline share. They may change in any release and are not public.
export { createHttpClient } from "./client/http-client.ts";
export { readFailure } from "./connection.ts";
