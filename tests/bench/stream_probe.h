// What the memory gives: the same bytes as a kernel must move, read and written
// once, in streams of ordinary loads and stores, in the very buffers that the
// kernel works on. So the probe meets the same level of the memory hierarchy
// with the same mix of reads and writes.
//
// Not thread-safe; measures the calling thread's core.
#ifndef REGATTA_TESTS_BENCH_STREAM_PROBE_H_
#define REGATTA_TESTS_BENCH_STREAM_PROBE_H_

#include <cstdint>
#include <vector>

namespace regatta::bench {

struct Stretch {
  char* data = nullptr;
  int64_t bytes = 0;
};

// Copies `reads` to `writes` line by line as far as both go; reads or fills
// what is left of the longer side. Stretches are rounded down to 256 bytes.
// The contents of `writes` are lost.
void Stream(const std::vector<Stretch>& reads,
            const std::vector<Stretch>& writes);

}  // namespace regatta::bench

#endif  // REGATTA_TESTS_BENCH_STREAM_PROBE_H_
