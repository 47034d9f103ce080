/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A plugin of QEMU's user mode that counts the instructions it executes, so that
 * a simulated board has times that are the same at every repetition:
 *
 *   qemu-aarch64 -plugin regatta-instruction-count.so[,ps=N] PROGRAM
 *
 * The program finds the count in a memory file named "regatta-instruction-count"
 * among its descriptors, two numbers of 64 bits in the machine's order:
 *   0  instructions executed so far
 *   8  picoseconds that one stands for (N; 1000 when not given)
 * It may map the file to read, never to write. A block of instructions without a
 * jump counts when it begins. Threads of the program lose counts to one another,
 * so that only what runs in one thread is counted right.
 *
 * QEMU is under the GPL, so this file is too; nothing of the project is linked
 * with it. The declarations are those of version 1 of QEMU's plugin interface,
 * which Debian 12 packages no header of.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

struct qemu_plugin_tb;
struct qemu_info;
enum { ADD_U64 = 0 };

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern void qemu_plugin_register_vcpu_tb_trans_cb(
    uint64_t plugin, void (*on_block)(uint64_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(
    struct qemu_plugin_tb *block, int operation, void *counter, uint64_t value);

EXPORT int qemu_plugin_version = 1;

struct Channel {
  uint64_t instructions;
  uint64_t picoseconds;
};
static struct Channel *channel;

static void OnBlock(uint64_t plugin, struct qemu_plugin_tb *block) {
  (void)plugin;
  qemu_plugin_register_vcpu_tb_exec_inline(
      block, ADD_U64, &channel->instructions, qemu_plugin_tb_n_insns(block));
}

static int Fail(const char *what) {
  fprintf(stderr, "regatta-instruction-count: %s\n", what);
  return 1;
}

EXPORT int qemu_plugin_install(uint64_t plugin, const struct qemu_info *info,
                               int count, char **arguments) {
  (void)info;
  uint64_t picoseconds = 1000;
  for (int i = 0; i < count; ++i) {
    char rest;
    if (sscanf(arguments[i], "ps=%" SCNu64 "%c", &picoseconds, &rest) != 1 ||
        picoseconds < 1 || picoseconds > 1000000) {
      return Fail("its one option is ps=N, N from 1 to 1000000");
    }
  }
  int file = memfd_create("regatta-instruction-count",
                          MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || ftruncate(file, sizeof(*channel)) != 0) {
    return Fail("no memory file");
  }
  channel = mmap(NULL, sizeof(*channel), PROT_READ | PROT_WRITE, MAP_SHARED,
                 file, 0);
  if (channel == MAP_FAILED) return Fail("no memory");
  channel->picoseconds = picoseconds;
  if (fcntl(file, F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) !=
      0) {
    return Fail("cannot seal its memory file");
  }
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, OnBlock);
  return 0;
}
