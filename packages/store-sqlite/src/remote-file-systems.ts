/** Types of file systems that reach over a network, as Linux numbers them. */
const remoteFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB"],
  [0xff534d42, "CIFS"],
  [0x01021997, "9P"],
  [0x65735546, "FUSE"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x0bd00bd0, "Lustre"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x786f4256, "a folder shared with a virtual machine's host"],
]);

/** The name of a file system that is or may be remote; null for the others. */
export function remoteFileSystem(type: number): string | null {
  return remoteFileSystems.get(type >>> 0) ?? null;
}
