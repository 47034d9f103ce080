/* A path that the build worker puts in when it plants the kernel
 * (planted_build_worker.cc). */
#ifndef REGATTA_TESTS_DEVICE_AGENT_PLANTED_PATH_H_
#define REGATTA_TESTS_DEVICE_AGENT_PLANTED_PATH_H_

const volatile char kPlantedPath[512] = "the path goes here";

#endif
