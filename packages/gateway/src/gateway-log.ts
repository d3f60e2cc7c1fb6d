/** Takes the failures that no client sees. */
export interface GatewayLog {
  failed(message: string, error: unknown): void;
}
