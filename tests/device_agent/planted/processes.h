/* Which other processes of the board there are, for kernels that reach for
 * them. */
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_PROCESSES_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_PROCESSES_H_

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0: cannot be told. */
static pid_t ParentOf(pid_t pid) {
  char name[64], text[512];
  snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
  FILE* file = fopen(name, "r");
  if (file == 0) return 0;
  text[fread(text, 1, sizeof(text) - 1, file)] = 0;
  fclose(file);
  const char* end = strrchr(text, ')');
  return end == 0 ? 0 : atoi(end + 4);
}

/* Calls `reach` with the spawner, the agent and the spawner's other workers.
 * Whether one call returned other than 0. */
static int ReachesAnother(int (*reach)(pid_t)) {
  const pid_t spawner = getppid();
  if (reach(spawner) != 0) return 1;
  const pid_t agent = ParentOf(spawner);
  if (agent > 0 && reach(agent) != 0) return 1;
  DIR* processes = opendir("/proc");
  if (processes == 0) return 0;
  int reached = 0;
  const struct dirent* entry;
  while (reached == 0 && (entry = readdir(processes)) != 0) {
    const pid_t pid = atoi(entry->d_name);
    if (pid > 0 && pid != getpid() && ParentOf(pid) == spawner) {
      reached = reach(pid);
    }
  }
  closedir(processes);
  return reached;
}

#endif
