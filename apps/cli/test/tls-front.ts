import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";

/** TLS in front of a server, as a proxy puts it there. */
export interface TlsFront {
  readonly url: string;
  /** The file of the authority that nobody knows, for `NODE_EXTRA_CA_CERTS`. */
  readonly authority: string;
  close(): void;
}

/** Takes TLS for `localhost` and passes the bytes on. The files of the certificate lie in the folder. */
export async function startTlsFront(port: number, folder: string): Promise<TlsFront> {
  const [key, authority] = [join(folder, "key.pem"), join(folder, "authority.pem")];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  const files = ["-keyout", key, "-out", authority, "-days", "2", "-nodes"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...files, ...names], { stdio: "ignore" });
  const front = createServer({ key: readFileSync(key), cert: readFileSync(authority) }, (client) => {
    const server = connect(port, "127.0.0.1");
    for (const socket of [client, server]) socket.on("error", () => void [client.destroy(), server.destroy()]);
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroy());
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const { port: ownPort } = front.address() as AddressInfo;
  return { url: `https://localhost:${ownPort}`, authority, close: () => void front.close() };
}
