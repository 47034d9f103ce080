// The loops themselves: what the verifier refuses and how it says so, what the
// passes do, where workspace goes.
#include "compiler/lower/loop_ir.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include "compiler/lower/loop_range.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::Scope;

// One input x[8], one output y[8], a workspace t[8], registers r[8].
struct Fixture : ProgramWriter {
  explicit Fixture(int threads = 1) : ProgramWriter(threads) {
    x = Add("x", Scope::kInput, DType::kF32, 8);
    y = Add("y", Scope::kOutput, DType::kF32, 8);
    t = Add("t", Scope::kWorkspace, DType::kF32, 8);
    r = Add("r", Scope::kRegister, DType::kF32, 8);
  }
  loop::StmtPtr Copy(int var, LoopKind kind = LoopKind::kSerial) {
    return loop::For(var, 8, kind, loop::Store(y, V(var), Load(x, V(var))));
  }
  int x, y, t, r;
};

std::string Refusal(const loop::Program& program) {
  const absl::Status status = loop::Verify(program);
  return status.ok() ? "OK" : std::string(status.message());
}

TEST(LoopVerifier, AcceptsACopy) {
  Fixture f;
  f.Kernel(f.Copy(f.Var(), LoopKind::kVector));
  EXPECT_EQ(Refusal(f.program), "OK");
}

TEST(LoopVerifier, NamesTheKernelAndTheStatement) {
  Fixture f;
  const int i = f.Var();
  f.Kernel(loop::For(i, 9, LoopKind::kSerial,
                     loop::Store(f.y, V(i), loop::Const(1))));
  EXPECT_EQ(Refusal(f.program),
            "loops: kernel k0: 'y[v0] = 1:f32': offset of y spans [0, 8] of 8 "
            "elements");
}

// acc[0..3] += products of a[0..3] and b[0..15], one row of four columns.
struct ProductFixture : ProgramWriter {
  ProductFixture() {
    a = Add("a", Scope::kInput, DType::kI8, 8);
    b = Add("b", Scope::kInput, DType::kI8, 16);
    y = Add("y", Scope::kOutput, DType::kI32, 4);
    acc = Add("acc", Scope::kRegister, DType::kI32, 4);
  }
  // The loops with one change, and what the verifier says of them.
  std::string Refuse(int64_t a_offset, int64_t sum_offset,
                     loop::ProductBlock block,
                     Reduction accumulate = Reduction::kSum) {
    const int i = Var(), j = Var();
    Kernel(loop::Block(
        {loop::For(i, 4, LoopKind::kVector,
                   loop::Store(acc, V(i), loop::Const(0, DType::kI32))),
         loop::Store(acc, Affine(sum_offset),
                     loop::Products(Load(a, Affine(a_offset)),
                                    Load(b, Affine()), block),
                     accumulate),
         loop::For(j, 4, LoopKind::kVector,
                   loop::Store(y, V(j), Load(acc, V(j))))}));
    return Refusal(program);
  }
  int a, b, y, acc;
};

TEST(LoopVerifier, ProductsHaveWholeBlocksInBounds) {
  const loop::ProductBlock block{.rows = 1, .cols = 4, .depth = 4};
  EXPECT_EQ(ProductFixture().Refuse(0, 0, block), "OK");
  EXPECT_EQ(ProductFixture().Refuse(4, 0, block), "OK");
  // One beyond the end of a, of acc, of b.
  EXPECT_NE(ProductFixture().Refuse(5, 0, block).find("offset of a spans"),
            std::string::npos);
  EXPECT_NE(ProductFixture().Refuse(0, 1, block).find("offset of acc spans"),
            std::string::npos);
  EXPECT_NE(ProductFixture()
                .Refuse(0, 0, {.rows = 1, .cols = 4, .depth = 5})
                .find("offset of b spans"),
            std::string::npos);
  EXPECT_NE(ProductFixture()
                .Refuse(0, 0, {.rows = 0, .cols = 4, .depth = 4})
                .find("empty block"),
            std::string::npos);
  EXPECT_NE(
      ProductFixture().Refuse(0, 0, block, Reduction::kNone).find("added"),
      std::string::npos);
}

TEST(LoopVerifier, ProductsStandAloneAndOutsideVectorLoops) {
  ProductFixture inside;
  const int i = inside.Var(), j = inside.Var();
  const loop::ValuePtr products = loop::Products(
      inside.Load(inside.a, Affine()), inside.Load(inside.b, Affine()),
      {.rows = 1, .cols = 4, .depth = 4});
  inside.Kernel(loop::Block(
      {loop::For(i, 4, LoopKind::kVector,
                 loop::Store(inside.acc, V(i), loop::Const(0, DType::kI32))),
       loop::For(
           j, 4, LoopKind::kVector,
           loop::Store(inside.acc, Affine(), products, Reduction::kSum))}));
  EXPECT_NE(Refusal(inside.program).find("products in a vector loop"),
            std::string::npos);
  ProductFixture nested;
  nested.Kernel(loop::Store(
      nested.y, Affine(),
      loop::Binary(BinaryOp::kAdd,
                   loop::Products(nested.Load(nested.a, Affine()),
                                  nested.Load(nested.b, Affine()),
                                  {.rows = 1, .cols = 1, .depth = 4}),
                   loop::Const(1, DType::kI32))));
  EXPECT_NE(Refusal(nested.program).find("products inside another value"),
            std::string::npos);
}

struct BadProgram {
  const char* name;
  const char* message;  // part of it
  std::function<void(Fixture&)> write;
};

void PrintTo(const BadProgram& bad, std::ostream* out) { *out << bad.name; }

const BadProgram kBadPrograms[] = {
    {"VariableTwice", "loop id 0 is used twice",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(loop::Block({f.Copy(i), f.Copy(i)}));
     }},
    {"UnknownVariable", "loop id 3 is not in [0, 1)",
     [](Fixture& f) {
       f.Var();
       f.Kernel(f.Copy(3));
     }},
    {"VariableOutOfScope", "v1 is not in scope",
     [](Fixture& f) {
       const int i = f.Var(), j = f.Var();
       f.Kernel(loop::For(i, 8, LoopKind::kSerial,
                          loop::Store(f.y, V(j), loop::Const(0))));
     }},
    {"ZeroExtent", "extent and unroll must be positive",
     [](Fixture& f) {
       f.Kernel(loop::For(f.Var(), 0, LoopKind::kSerial,
                          loop::Store(f.y, Affine(0), loop::Const(0))));
     }},
    {"LoadBelowTheBuffer", "offset of x spans [-1, 6] of 8 elements",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(
           loop::For(i, 8, LoopKind::kSerial,
                     loop::Store(f.y, V(i), f.Load(f.x, V(i) + Affine(-1)))));
     }},
    {"GuardThatDoesNotHelp", "offset of x spans [-1, 6]",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(
           loop::For(i, 8, LoopKind::kSerial,
                     loop::Store(f.y, V(i),
                                 f.Load(f.x, V(i) + Affine(-1), {{V(i), 8}}))));
     }},
    {"ReadBeforeWritten", "reads t before anything wrote it",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(loop::For(i, 8, LoopKind::kSerial,
                          loop::Store(f.y, V(i), f.Load(f.t, V(i)))));
     }},
    {"AccumulatedBeforeWritten", "accumulates into y before anything set it",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(
           loop::For(i, 8, LoopKind::kSerial,
                     loop::Store(f.y, V(i), loop::Const(1), Reduction::kSum)));
     }},
    {"StoreToInput", "stores to an input",
     [](Fixture& f) { f.Kernel(loop::Store(f.x, Affine(0), loop::Const(1))); }},
    {"OutputNeverWritten", "output y is never written",
     [](Fixture& f) { f.Kernel(loop::Store(f.t, Affine(0), loop::Const(1))); }},
    {"RegisterIndexedBySerialLoop", "register buffer r indexed by v0",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(loop::For(i, 8, LoopKind::kSerial,
                          loop::Store(f.r, V(i), loop::Const(1))));
     }},
    {"RegisterInTwoKernels", "buffer r is private to another loop nest",
     [](Fixture& f) {
       f.Kernel(loop::Store(f.r, Affine(0), loop::Const(1)));
       f.Kernel(loop::Store(f.y, Affine(0), f.Load(f.r, Affine(0))));
     }},
    {"ParallelInsideALoop", "a parallel loop inside another loop",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(loop::For(f.Var(), 2, LoopKind::kSerial,
                          f.Copy(i, LoopKind::kParallel)));
     }},
    {"LoopInsideAVectorLoop", "a loop inside a vector loop",
     [](Fixture& f) {
       const int i = f.Var();
       f.Kernel(loop::For(f.Var(), 2, LoopKind::kVector, f.Copy(i)));
     }},
    {"ParallelIterationsStoreTheSameElement",
     "every iteration of the parallel loop stores there",
     [](Fixture& f) {
       f.Kernel(loop::For(f.Var(), 8, LoopKind::kParallel,
                          loop::Store(f.y, Affine(3), loop::Const(1))));
     }},
    {"StoreOfAnotherType", "a f64 stored as f32",
     [](Fixture& f) {
       f.Kernel(loop::Store(f.y, Affine(0), loop::Const(1, DType::kF64)));
     }},
    {"UnequalOperands", "unequal types",
     [](Fixture& f) {
       f.Kernel(loop::Store(f.y, Affine(0),
                            loop::Binary(BinaryOp::kAdd, loop::Const(1),
                                         loop::Const(1, DType::kI32))));
     }},
    {"ConditionThatIsANumber", "condition type",
     [](Fixture& f) {
       f.Kernel(loop::Store(
           f.y, Affine(0),
           loop::Select(loop::Const(1), loop::Const(1), loop::Const(2))));
     }},
    {"StreamingRegisters", "streaming",
     [](Fixture& f) {
       f.Kernel(loop::Store(f.r, Affine(0), loop::Const(1), Reduction::kNone,
                            /*streaming=*/true));
     }},
    {"StreamingSum", "streaming",
     [](Fixture& f) {
       f.Kernel(loop::Block(
           {loop::Store(f.y, Affine(0), loop::Const(1)),
            loop::Store(f.y, Affine(0), loop::Const(1), Reduction::kSum,
                        /*streaming=*/true)}));
     }},
    {"ExpOfAnInteger", "integer type",
     [](Fixture& f) {
       f.Kernel(loop::Store(
           f.y, Affine(0),
           loop::Cast(loop::Unary(UnaryOp::kExp, loop::Const(1, DType::kI32)),
                      DType::kF32)));
     }},
};

class BadPrograms : public testing::TestWithParam<BadProgram> {};
INSTANTIATE_TEST_SUITE_P(LoopVerifier, BadPrograms,
                         testing::ValuesIn(kBadPrograms), [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST_P(BadPrograms, AreRefusedWithTheReason) {
  Fixture f;
  GetParam().write(f);
  EXPECT_EQ(loop::Verify(f.program).code(), absl::StatusCode::kInternal);
  EXPECT_NE(Refusal(f.program).find(GetParam().message), std::string::npos)
      << Refusal(f.program);
  EXPECT_FALSE(LowerProgram(f.program).ok());
}

TEST(LoopRange, GuardsNarrowTheSumsThatTheyAreThePartsOf) {
  // offset = 10 row + column, row = v0 - 1 in [0, 5), column = v1 - 1 in [0,10)
  const auto extent = [](int var) { return var == 0 ? 7 : 12; };
  const Affine row = V(0) + Affine(-1), column = V(1) + Affine(-1);
  const auto range =
      loop::GuardedRange(row * 10 + column, {{row, 5}, {column, 10}}, extent);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->min, 0);
  EXPECT_EQ(range->max, 49);
  const auto never = loop::GuardedRange(row, {{V(0) + Affine(50), 5}}, extent);
  EXPECT_FALSE(never.has_value());
}

TEST(Lowering, DropsUnitLoopsAndGuardsThatAlwaysHold) {
  Fixture f;
  const int o = f.Var(), i = f.Var();
  f.Kernel(loop::For(
      o, 1, LoopKind::kSerial,
      loop::For(i, 8, LoopKind::kVector,
                loop::Store(f.y, V(o, 8) + V(i),
                            f.Load(f.x, V(i), {{V(i) + V(o), 8}}, 3)))));
  const auto lowered = LowerProgram(f.program);
  ASSERT_STATUS_OK(lowered);
  const std::string text = loop::ToString(lowered->program);
  EXPECT_NE(text.find("  vector v1 < 8\n    y[v1] = x[v1]\n"),
            std::string::npos)
      << text;
}

TEST(Lowering, ALoadWhoseGuardsNeverHoldIsItsPad) {
  Fixture f;
  const int i = f.Var();
  f.Kernel(loop::For(
      i, 8, LoopKind::kVector,
      loop::Store(f.y, V(i), f.Load(f.x, V(i), {{V(i) + Affine(-20), 8}}, 3))));
  const auto lowered = LowerProgram(f.program);
  ASSERT_STATUS_OK(lowered);
  EXPECT_NE(loop::ToString(lowered->program).find("y[v0] = 3:f32"),
            std::string::npos);
}

TEST(Lowering, WorkspaceOfBuffersThatAreNeverAliveTogetherIsShared) {
  ProgramWriter w(3);
  const int x = w.Add("x", Scope::kInput, DType::kF32, 100);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, 100);
  int scratch[3];
  for (int& s : scratch) {
    s = w.Add("s", Scope::kWorkspace, DType::kF32, 100);
  }
  const int own = w.Add("own", Scope::kWorkspace, DType::kF32, 5);
  w.program.buffers[own].per_thread = true;
  w.Add("unused", Scope::kWorkspace, DType::kF32, 1000);
  const auto copy = [&](int to, int from) {
    const int i = w.Var();
    return loop::For(i, 100, LoopKind::kSerial,
                     loop::Store(to, V(i), w.Load(from, V(i))));
  };
  w.Kernel(copy(scratch[0], x));
  w.Kernel(copy(scratch[1], scratch[0]));
  w.Kernel(copy(scratch[2], scratch[1]));
  w.Kernel(copy(y, scratch[2]));
  const int p = w.Var();
  w.Kernel(
      loop::For(p, 4, LoopKind::kParallel,
                loop::Block({loop::Store(own, Affine(0), loop::Const(1)),
                             loop::Store(y, V(p), w.Load(own, Affine(0)))})));
  const auto lowered = LowerProgram(w.program);
  ASSERT_STATUS_OK(lowered);
  const auto& offset = lowered->workspace_offset;
  // 400 bytes round up to 448; at most two of the three live at once.
  EXPECT_EQ(lowered->workspace_bytes, 2 * 448);
  EXPECT_NE(offset[scratch[0]], offset[scratch[1]]);
  EXPECT_NE(offset[scratch[1]], offset[scratch[2]]);
  EXPECT_EQ(offset[scratch[0]], offset[scratch[2]]);
  EXPECT_EQ(lowered->workspace_stride[own], 64);
  EXPECT_EQ(offset[own + 1], -1);
  EXPECT_EQ(offset[x], -1);
  for (const int64_t o : offset) EXPECT_TRUE(o == -1 || o % 64 == 0);
}

}  // namespace
}  // namespace regatta
