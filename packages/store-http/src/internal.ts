// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { createHttpClient } from "./client/http-client.ts";
export { readFailure } from "./connection.ts";
