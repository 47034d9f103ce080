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

// Down to one work-item at a time and next to no local memory.
TEST(DeviceRulesTest, ADefaultFitsTheSmallestBoards) {
  for (const char* target :
       {"opencl,vector_bits=128,max_group=1,local_bytes=32768",
        "opencl,vector_bits=128,max_group=3,local_bytes=32768",
        "opencl,vector_bits=128,max_group=256,local_bytes=8",
        "opencl,vector_bits=128,max_group=1,local_bytes=1"}) {
    for (const char* workload :
         {"reduce(shape=8x64,axes=1)", "softmax(rows=4,cols=64)",
          "layer_norm(rows=4,cols=64)",
          "C[i] = sum(k) A[i,k]*B[k] where i=7,k=33,dtype=f16",
          "matmul(m=9,n=8,k=17)"}) {
      const Space space = SpaceOf(workload, target);
      const Schedule schedule = space.Default();
      EXPECT_EQ(space.Refusal(schedule), std::nullopt)
          << target << " " << workload << " " << space.Print(schedule);
      const loop::Program program = space.Emit(schedule);
      EXPECT_LE(LocalBytes(program), space.context().target.local_bytes);
      for (const loop::Kernel& kernel : program.kernels) {
        EXPECT_LE(GroupSize(kernel), space.context().target.max_group);
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

constexpr const char* kPhone =
    "opencl,features=+cl_khr_fp16,vector_bits=128,max_group=256,"
    "local_bytes=32768,image_width=16,image_height=128";

std::string TilesOf(const std::string& rest) {
  return "tiles{vectors=1,rows=2,tx=4,ty=4,kc=4,pad=0," + rest + "}";
}

TEST(DeviceRulesTest, ImagesHaveWholePixelsAndFitTheBoard) {
  const Space space = SpaceOf("matmul(m=96,n=64,k=64)", kPhone);
  EXPECT_EQ(RefusalOf(space, TilesOf("vec=4,local=a,unroll=1,b_from=image")),
            "legal");
  EXPECT_EQ(RefusalOf(space, TilesOf("vec=2,local=none,unroll=1,b_from=image")),
            "image_pixels: vectors of 2 elements hold no whole pixels of four");
  EXPECT_EQ(RefusalOf(space, TilesOf("vec=4,local=ab,unroll=1,b_from=image")),
            "image_or_local: an image is not copied to local memory");
  // 128 columns are 32 pixels; 200 summed elements are rows of the image.
  EXPECT_EQ(RefusalOf(SpaceOf("matmul(m=96,n=128,k=200)", kPhone),
                      TilesOf("vec=4,local=none,unroll=1,b_from=image")),
            "image_size: 32 x 200 pixels of at most 16 x 128");
}

TEST(DeviceRulesTest, SumsInHalfNeedCopiesOfTheLoop) {
  const Space space = SpaceOf("matmul(m=96,n=66,k=64,dtype=f16)", kPhone);
  EXPECT_EQ(RefusalOf(space, TilesOf("vec=2,local=ab,unroll=4,f16_sums=4")),
            "legal");
  EXPECT_EQ(RefusalOf(space, TilesOf("vec=2,local=ab,unroll=2,f16_sums=4")),
            "f16_sums_fit: 4 products in a loop of 2 copies");
}

TEST(DeviceRulesTest, ChoicesAreOfferedWhereBoardAndShapeHaveWhatTheyNeed) {
  const auto offers = [](const char* workload, const char* target,
                         const char* knob) {
    const Space space = SpaceOf(workload, target);
    const std::string text = space.Print(space.Default());
    return text.find(knob) != std::string::npos;
  };
  const char* const half = "matmul(m=96,n=64,k=64,dtype=f16)";
  EXPECT_TRUE(offers(half, kPhone, "b_from="));
  EXPECT_TRUE(offers(half, kPhone, "f16_sums="));
  EXPECT_FALSE(offers(half, "opencl", "b_from="));
  EXPECT_FALSE(offers(half, "opencl", "f16_sums="));
  // Rows of no whole pixels; bytes have no image, nor sums in f16.
  EXPECT_FALSE(offers("matmul(m=96,n=66,k=64)", kPhone, "b_from="));
  EXPECT_FALSE(offers("matmul(m=96,n=64,k=64,dtype=i8)", kPhone, "b_from="));
  EXPECT_FALSE(offers("matmul(m=96,n=64,k=64)", kPhone, "f16_sums="));
  // Its results would be further off than f32 allows.
  EXPECT_FALSE(offers("matmul(m=96,n=64,k=64,dtype=f16,out_dtype=f32)", kPhone,
                      "f16_sums="));
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
