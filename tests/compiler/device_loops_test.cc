// Device kernels: what the verifier refuses, what the passes keep, and what the
// loop interpreter computes and finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "compiler/lower/intrinsics.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/status_text.h"
#include "tests/support/loop_interpreter.h"

namespace regatta {
namespace {

using loop::For;
using loop::LoopKind;
using loop::Scope;
using ::testing::HasSubstr;

// x[32] and y[32] of f32, 4 groups of 8 threads, local s[8], registers r[2].
struct Fixture : ProgramWriter {
  Fixture() {
    x = Add("x", Scope::kInput, DType::kF32, 32);
    y = Add("y", Scope::kOutput, DType::kF32, 32);
    s = Add("s", Scope::kLocal, DType::kF32, 8);
    r = Add("r", Scope::kRegister, DType::kF32, 2);
    g = Var();
    t = Var();
  }
  Affine Here() const { return V(g, 8) + V(t); }
  loop::StmtPtr Copy() const { return loop::Store(y, Here(), Load(x, Here())); }
  void Threads(loop::StmtPtr body) {
    Kernel(For(g, 4, LoopKind::kGroup,
               For(t, 8, LoopKind::kThread, std::move(body))));
  }
  int x, y, s, r, g, t;
};

std::string Refusal(const loop::Program& program) {
  const absl::Status status = loop::Verify(program);
  return status.ok() ? "OK" : std::string(status.message());
}

struct BadProgram {
  const char* name;
  const char* message;  // part of it
  std::function<void(Fixture&)> write;
};

void PrintTo(const BadProgram& bad, std::ostream* out) { *out << bad.name; }

const BadProgram kBadPrograms[] = {
    {"GroupInsideThread", "a group loop inside a thread loop",
     [](Fixture& f) {
       f.Kernel(For(f.t, 8, LoopKind::kThread,
                    For(f.g, 4, LoopKind::kGroup, f.Copy())));
     }},
    {"ThreadBesideAStatement", "a group or thread loop that is not outermost",
     [](Fixture& f) {
       f.Kernel(For(f.g, 4, LoopKind::kGroup,
                    loop::Block({loop::Store(f.r, Affine(0), loop::Const(1)),
                                 For(f.t, 8, LoopKind::kThread, f.Copy())})));
     }},
    {"ThreadInsideASerialLoop", "a group or thread loop that is not outermost",
     [](Fixture& f) {
       f.Kernel(For(f.g, 4, LoopKind::kSerial,
                    For(f.t, 8, LoopKind::kThread, f.Copy())));
     }},
    {"FourThreadLoops", "more than three",
     [](Fixture& f) {
       loop::StmtPtr body = For(f.t, 8, LoopKind::kThread, f.Copy());
       for (int i = 0; i < 3; ++i) {
         body = For(f.Var(), 1, LoopKind::kThread, body);
       }
       f.Kernel(For(f.g, 4, LoopKind::kGroup, body));
     }},
    {"BarrierOfAProcessor", "only device kernels have barriers",
     [](Fixture& f) { f.Kernel(loop::Barrier()); }},
    {"GuardOfAProcessor", "only device kernels have guarded statements",
     [](Fixture& f) {
       f.Kernel(For(
           f.g, 4, LoopKind::kSerial,
           loop::If({{V(f.g), 2}}, loop::Store(f.y, V(f.g), loop::Const(1)))));
     }},
    {"BarrierForSomeThreads", "under a guard on v1, which differs",
     [](Fixture& f) {
       f.Threads(loop::Block(
           {f.Copy(), loop::If({{V(f.t) + V(f.g), 4}}, loop::Barrier())}));
     }},
    {"BarrierOfLanes", "inside a vector loop",
     [](Fixture& f) {
       f.Threads(loop::Block(
           {f.Copy(), For(f.Var(), 4, LoopKind::kVector, loop::Barrier())}));
     }},
    {"LocalMemoryOfAProcessor", "local buffer s in a kernel without groups",
     [](Fixture& f) { f.Kernel(loop::Store(f.s, Affine(0), loop::Const(1))); }},
    {"LocalMemoryOfTwoKernels", "buffer s is private to another loop nest",
     [](Fixture& f) {
       f.Threads(loop::Store(f.s, V(f.t), loop::Const(1)));
       const int t = f.Var();
       f.Kernel(For(t, 8, LoopKind::kThread,
                    loop::Store(f.y, V(t), f.Load(f.s, V(t)))));
     }},
    {"ThreadsStoreTheSameElement",
     "every iteration of the thread loop stores there",
     [](Fixture& f) { f.Threads(loop::Store(f.y, V(f.g), loop::Const(1))); }},
    {"GroupsStoreTheSameElement",
     "every iteration of the group loop stores there",
     [](Fixture& f) { f.Threads(loop::Store(f.y, V(f.t), loop::Const(1))); }},
    {"GuardThatLeavesTwoThreads",
     "every iteration of the thread loop stores there",
     [](Fixture& f) {
       f.Threads(
           loop::If({{V(f.t), 2}}, loop::Store(f.y, V(f.g), loop::Const(1))));
     }},
    {"UnknownIntrinsic", "'fly()': no such intrinsic",
     [](Fixture& f) {
       f.Threads(loop::Block({f.Copy(), loop::CallIntrinsic("fly")}));
     }},
    {"IntrinsicOfAProcessor", "only device kernels have intrinsics",
     [](Fixture& f) { f.Kernel(loop::CallIntrinsic(loop::kCommitAsync)); }},
    {"CopyFromLocalMemory", "y is in memory of the wrong kind",
     [](Fixture& f) {
       f.Threads(
           loop::Block({f.Copy(), loop::CallIntrinsic(
                                      loop::CopyAsync(16),
                                      {{.buffer = f.y}, {.buffer = f.s}})}));
     }},
    {"CopyBesideAlignment", "the offset of x is no multiple of 4",
     [](Fixture& f) {
       f.Threads(loop::Block(
           {f.Copy(), loop::If({{V(f.t), 1}},
                               loop::CallIntrinsic(
                                   loop::CopyAsync(16),
                                   {{.buffer = f.s},
                                    {.buffer = f.x, .offset = Affine(2)}}))}));
     }},
    {"CopyBeyondTheEnd", "offset of s spans [0, 28] of 8",
     [](Fixture& f) {
       f.Threads(loop::Block(
           {f.Copy(),
            loop::CallIntrinsic(loop::CopyAsync(16),
                                {{.buffer = f.s, .offset = V(f.t, 4)},
                                 {.buffer = f.x, .offset = V(f.t, 4)}})}));
     }},
    {"LetOfAProcessor", "only device kernels have lets",
     [](Fixture& f) {
       f.Kernel(loop::Let(f.g, 4, Affine(), 1,
                          loop::Store(f.y, V(f.g), loop::Const(1))));
     }},
    {"LetOfANegativeNumber", "divides a number that may be -4",
     [](Fixture& f) {
       f.Threads(loop::Let(f.Var(), 4, V(f.t) + Affine(-4), 2, f.Copy()));
     }},
    {"BarrierForSomeThreadsByALet", "under a guard on v2, which differs",
     [](Fixture& f) {
       const int half = f.Var();
       f.Threads(loop::Block(
           {f.Copy(), loop::Let(half, 2, V(f.t), 4,
                                loop::If({{V(half), 1}}, loop::Barrier()))}));
     }},
    {"LetsStoreTheSameElement",
     "every iteration of the thread loop stores there",
     [](Fixture& f) {
       const int half = f.Var();
       f.Threads(loop::Let(half, 2, V(f.g), 2,
                           loop::Store(f.y, V(half), loop::Const(1))));
     }},
    {"LoadOfAFragment", "loads a fragment",
     [](Fixture& f) {
       const int w = f.Add("w", Scope::kFragment, DType::kF32, 4);
       f.Threads(loop::Store(f.y, f.Here(), f.Load(w, Affine())));
     }},
    {"MatricesForSomeThreads", "under a guard on v1, which differs",
     [](Fixture& f) {
       const int w = f.Add("w", Scope::kFragment, DType::kF32, 4);
       f.Threads(loop::Block(
           {f.Copy(), loop::Store(f.s, V(f.t), loop::Const(1)),
            loop::If({{V(f.t), 4}},
                     loop::CallIntrinsic(loop::LoadMatrix(4, false),
                                         {{.buffer = w}, {.buffer = f.s}}))}));
     }},
    {"ProductOfOtherTypes", "elements of unequal types",
     [](Fixture& f) {
       const int w = f.Add("w", Scope::kFragment, DType::kF32, 8);
       f.Threads(
           loop::Block({f.Copy(), loop::Store(f.s, V(f.t), loop::Const(1)),
                        loop::Store(f.r, Affine(), loop::Const(0)),
                        loop::CallIntrinsic(loop::LoadMatrix(4, false),
                                            {{.buffer = w}, {.buffer = f.s}}),
                        loop::CallIntrinsic(
                            "mma_i8x8x8x16",
                            {{.buffer = f.r}, {.buffer = w}, {.buffer = w}})}));
     }},
    {"SwizzleOfPartOfALine", "buffer s of 8 elements is swizzled by 32",
     [](Fixture& f) {
       f.program.buffers[f.s].swizzle = 32;
       f.Threads(f.Copy());
     }},
    {"GuardThatDoesNotHelp", "offset of y spans [3, 34] of 32",
     [](Fixture& f) {
       f.Threads(
           loop::If({{f.Here(), 32}},
                    loop::Store(f.y, f.Here() + Affine(3), loop::Const(1))));
     }},
};

class BadDeviceKernels : public testing::TestWithParam<BadProgram> {};
INSTANTIATE_TEST_SUITE_P(DeviceLoops, BadDeviceKernels,
                         testing::ValuesIn(kBadPrograms), [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST_P(BadDeviceKernels, AreRefusedWithTheReason) {
  Fixture f;
  GetParam().write(f);
  EXPECT_THAT(Refusal(f.program), HasSubstr(GetParam().message));
}

TEST(DeviceLoops, OneThreadMayStoreForItsGroup) {
  Fixture f;
  f.Threads(loop::Block(
      {loop::Store(f.s, V(f.t), f.Load(f.x, f.Here())), loop::Barrier(),
       loop::If({{V(f.t), 1}},
                loop::Store(f.y, V(f.g), f.Load(f.s, Affine(7))))}));
  EXPECT_EQ(Refusal(f.program), "OK");
}

TEST(DeviceLoops, LoweringKeepsGroupsOfOneAndDropsGuardsThatHold) {
  Fixture f;
  f.Kernel(
      For(f.g, 1, LoopKind::kGroup,
          For(f.t, 1, LoopKind::kThread,
              loop::If({{V(f.t), 1}}, loop::If({{V(f.g, 3), 8}}, f.Copy())))));
  const auto lowered = LowerProgram(f.program);
  ASSERT_STATUS_OK(lowered);
  EXPECT_THAT(loop::ToString(lowered->program),
              HasSubstr("  group v0 < 1\n    thread v1 < 1\n      y["));
}

TEST(DeviceLoops, AGuardAroundALoadMakesItsOwnNeedless) {
  Fixture f;
  const std::vector<loop::Guard> inside = {{f.Here(), 30}};
  f.Threads(loop::Block(
      {f.Copy(),
       loop::If(inside,
                loop::Store(f.y, f.Here(), f.Load(f.x, f.Here(), inside)))}));
  const auto lowered = LowerProgram(f.program);
  ASSERT_STATUS_OK(lowered);
  EXPECT_THAT(
      loop::ToString(lowered->program),
      HasSubstr("if 0 <= 8*v0+v1 < 30\n        y[8*v0+v1] = x[8*v0+v1]"));
}

TEST(DeviceLoops, AStagedMatmulComputesTheProduct) {
  const TiledMatmul cases[] = {
      {.m = 32, .n = 32, .k = 16},
      {.m = 19, .n = 23, .k = 13},
      {.m = 5, .n = 70, .k = 9, .bm = 8, .bn = 32, .bk = 4, .rm = 4, .rn = 8},
      {.m = 19, .n = 23, .k = 13, .dtype = DType::kI8, .out = DType::kI32}};
  for (const TiledMatmul& c : cases) {
    const loop::Program program = c.Emit();
    ASSERT_EQ(Refusal(program), "OK");
    const auto inputs = WholeNumbers(program, 7);
    for (const loop::Program& p : {program, LowerProgram(program)->program}) {
      const LoopRun run = RunLoops(p, inputs);
      EXPECT_EQ(run.race, "");
      for (int64_t i = 0; i < c.m; ++i) {
        for (int64_t j = 0; j < c.n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < c.k; ++k) {
            sum += inputs[0][i * c.k + k] * inputs[1][k * c.n + j];
          }
          ASSERT_EQ(run.outputs[0][i * c.n + j], sum) << i << ", " << j;
        }
      }
    }
  }
}

TEST(DeviceLoops, AsynchronousCopiesLandAtTheWait) {
  AsyncCopies copies;
  const auto inputs = WholeNumbers(copies.Emit(), 5);
  ASSERT_EQ(Refusal(copies.Emit()), "OK");
  const LoopRun run = RunLoops(LowerProgram(copies.Emit())->program, inputs);
  EXPECT_EQ(run.race, "");
  for (int i = 0; i < 96; ++i) {
    EXPECT_EQ(run.outputs[0][i], inputs[0][i < 48 ? 47 - i : 143 - i]) << i;
  }
  copies.first_wait = false;
  const LoopRun early = RunLoops(copies.Emit(), inputs);
  for (int i = 0; i < 48; ++i) {
    EXPECT_TRUE(std::isnan(early.outputs[0][i])) << i;
  }
}

TEST(DeviceLoops, AMissingBarrierIsARace) {
  TiledMatmul matmul{.m = 16, .n = 16, .k = 16};
  const auto inputs = WholeNumbers(matmul.Emit(), 7);
  matmul.first_barrier = false;
  EXPECT_THAT(RunLoops(matmul.Emit(), inputs).race,
              HasSubstr("by another thread with no barrier between"));
  matmul.first_barrier = true;
  matmul.second_barrier = false;
  EXPECT_THAT(RunLoops(matmul.Emit(), inputs).race,
              HasSubstr("kernel k0: a store to a_tile[0] and a load by another "
                        "thread with no barrier between"));
}

TEST(DeviceLoops, GroupsThatMeetRace) {
  Fixture f;
  // Every group reads its neighbour's part of what all of them write.
  f.Threads(
      loop::Block({f.Copy(), loop::Barrier(),
                   loop::If({{V(f.g) + Affine(-1), 3}},
                            loop::Store(f.y, f.Here(),
                                        f.Load(f.y, f.Here() + Affine(-8))))}));
  EXPECT_EQ(Refusal(f.program), "OK");
  EXPECT_THAT(RunLoops(f.program, WholeNumbers(f.program, 1)).race,
              HasSubstr("a load of y[0] and a store by another group"));
  // The next kernel may.
  Fixture g;
  g.Threads(g.Copy());
  const int b = g.Var(), t = g.Var();
  g.Kernel(For(b, 4, LoopKind::kGroup,
               For(t, 8, LoopKind::kThread,
                   loop::Store(g.y, V(b, 8) + V(t), g.Load(g.y, V(b, 8) + V(t)),
                               Reduction::kSum))));
  const LoopRun run = RunLoops(g.program, WholeNumbers(g.program, 1));
  EXPECT_EQ(run.race, "");
  EXPECT_EQ(run.outputs[0][5], 2 * WholeNumbers(g.program, 1)[0][5]);
}

TEST(DeviceLoops, RegistersAreAThreadsOwnAndLocalMemoryAGroups) {
  Fixture f;
  // Each thread keeps its own number over a barrier; what a group reads from
  // local memory that it never wrote is no number.
  f.Threads(loop::Block(
      {loop::Store(f.r, Affine(1), f.Load(f.x, f.Here())), loop::Barrier(),
       loop::If({{V(f.g), 1}}, loop::Store(f.s, V(f.t), loop::Const(1))),
       loop::Store(f.y, f.Here(),
                   loop::Binary(BinaryOp::kMul, f.Load(f.r, Affine(1)),
                                f.Load(f.s, V(f.t))))}));
  EXPECT_EQ(Refusal(f.program), "OK");
  const auto inputs = WholeNumbers(f.program, 3);
  const LoopRun run = RunLoops(f.program, inputs);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(run.outputs[0][i], inputs[0][i]);
  for (int i = 8; i < 32; ++i) EXPECT_TRUE(std::isnan(run.outputs[0][i])) << i;
}

}  // namespace
}  // namespace regatta
