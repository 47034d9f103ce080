// What the rules for devices promise beyond right results: limits of the board
// are kept, and tiles live where the schedule says.
#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/compiler/space_support.h"

namespace regatta {
namespace {

constexpr const char* kTiny =
    "opencl,vector_bits=128,max_group=32,local_bytes=2048,max_registers=40";

int64_t LocalBytes(const loop::Program& program) {
  int64_t bytes = 0;
  for (const loop::Buffer& buffer : program.buffers) {
    if (buffer.scope == loop::Scope::kLocal) {
      bytes += buffer.elements * DTypeBytes(buffer.dtype);
    }
  }
  return bytes;
}

// Product of the extents of the thread loops around a kernel.
int64_t GroupSize(const loop::Kernel& kernel) {
  int64_t size = 1;
  const loop::Stmt* at = kernel.body.get();
  while (at->kind == loop::Stmt::Kind::kFor &&
         (at->loop == loop::LoopKind::kGroup ||
          at->loop == loop::LoopKind::kThread)) {
    if (at->loop == loop::LoopKind::kThread) size *= at->extent;
    at = at->body[0].get();
  }
  return size;
}

std::string RefusalOf(const Space& space, const std::string& text) {
  const absl::StatusOr<Schedule> schedule = space.Parse(text);
  if (!schedule.ok()) return schedule.status().ToString();
  return space.Refusal(*schedule).value_or("legal");
}

TEST(DeviceRulesTest, NothingExceedsTheBoard) {
  for (const char* workload :
       {"matmul(m=96,n=128,k=64)", "softmax(rows=64,cols=500)",
        "conv2d(n=1,h=14,w=14,ci=32,co=64,kh=3,kw=3,pad=1)",
        "pool2d(n=1,h=16,w=16,c=20,kh=2,kw=2,stride=2)"}) {
    const Space space = SpaceOf(workload, kTiny);
    Random random(3);
    for (int i = 0; i < 50; ++i) {
      const std::optional<Schedule> schedule =
          i == 0 ? space.Default() : space.Sample(random);
      ASSERT_TRUE(schedule.has_value());
      const loop::Program program = space.Emit(*schedule);
      EXPECT_LE(LocalBytes(program), 2048) << space.Print(*schedule);
      for (const loop::Kernel& kernel : program.kernels) {
        EXPECT_TRUE(loop::IsDeviceKernel(kernel)) << space.Print(*schedule);
        EXPECT_LE(GroupSize(kernel), 32) << space.Print(*schedule);
      }
    }
  }
}

TEST(DeviceRulesTest, RefusalsNameTheLimit) {
  const Space space = SpaceOf("matmul(m=96,n=128,k=64)", kTiny);
  EXPECT_EQ(RefusalOf(space,
                      "tiles{vec=1,vectors=1,rows=1,tx=16,ty=16,local=none,"
                      "kc=4,unroll=1,pad=0}"),
            "group_size: 256 work-items of at most 32");
  // A: 32 summed elements of 4*8 rows; B: 32 of 4*4*4 columns.
  EXPECT_EQ(RefusalOf(space,
                      "tiles{vec=4,vectors=1,rows=4,tx=4,ty=8,local=ab,kc=32,"
                      "unroll=1,pad=0}"),
            "local_memory: 6144 bytes of 2048");
  // 8*4 sums, 8 of A, 4 of B, 16 besides.
  EXPECT_EQ(RefusalOf(space,
                      "tiles{vec=4,vectors=1,rows=8,tx=2,ty=2,local=none,kc=4,"
                      "unroll=1,pad=0}"),
            "registers: 60 of 40 registers");
}

TEST(DeviceRulesTest, AMatmulsDefaultKeepsBothTilesInLocalMemory) {
  const Space space = SpaceOf("matmul(m=512,n=512,k=512)", kMali);
  const loop::Program program = space.Emit(space.Default());
  ASSERT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(GroupSize(program.kernels[0]), 256);
  // 16 summed elements of 64 rows and of 64 columns.
  EXPECT_EQ(LocalBytes(program), 2 * 16 * 64 * 4);
}

TEST(DeviceRulesTest, RowsAreReducedByGroupsAndColumnsByThreads) {
  const auto sketch = [](const char* workload) {
    const Space space = SpaceOf(workload, kMali);
    const std::string text = space.Print(space.Default());
    return text.substr(0, text.find('{'));
  };
  EXPECT_EQ(sketch("Y[i] = sum(j) X[i,j] where i=64, j=1000"), "group_reduce");
  EXPECT_EQ(sketch("Y[j] = sum(i) X[i,j] where i=1000, j=64"), "threads");
}

TEST(DeviceRulesTest, AFusedActivationIsPartOfTheTile) {
  const Space space = SpaceOf("dense(m=64,n=64,k=64,activation=relu)", kMali);
  const loop::Program program = space.Emit(space.Default());
  EXPECT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(std::count_if(program.buffers.begin(), program.buffers.end(),
                          [](const loop::Buffer& b) {
                            return b.scope == loop::Scope::kWorkspace;
                          }),
            0);
}

}  // namespace
}  // namespace regatta
