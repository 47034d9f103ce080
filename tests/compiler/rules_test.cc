// What rules see in a workload, and the structure of the loops they write.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "compiler/space/rules/contraction_shape.h"
#include "compiler/space/rules/rows_shape.h"
#include "compiler/space/simplify.h"
#include "gtest/gtest.h"
#include "tests/compiler/space_support.h"

namespace regatta {
namespace {

// "batch | m | n | k | vector", by the names of the simplified indices.
std::string Roles(const std::string& text) {
  const Workload workload = Simplify(WorkloadOf(text));
  const auto shape = MatchContraction(workload, 0);
  if (!shape) return "none";
  std::string roles;
  for (const auto* group : {&shape->batch, &shape->m, &shape->n, &shape->k}) {
    for (int index : *group) roles += workload.indices[index].name;
    roles += "|";
  }
  return roles + workload.indices[shape->vector].name +
         (shape->vector_in_a ? " both" : "") +
         (shape->b_contiguous ? "" : " strided") +
         (shape->fusable_stages > 0
              ? " +" + std::to_string(shape->fusable_stages)
              : "");
}

TEST(ContractionShapeTest, IndicesHaveTheRolesThatTheyPlay) {
  const struct {
    const char* workload;
    const char* roles;
  } kCases[] = {
      {"matmul(m=20,n=30,k=40)", "|i||k|j"},
      {"C[i,j] = sum(k) B[k,j] * A[i,k] where i=20, j=30, k=40", "|i||k|j"},
      {"C[j,i] = sum(k) A[i,k] * B[k,j] where i=20, j=30, k=40",
       "|j||k|i strided"},
      {"C[i,j] = sum(k) A[i,k] * B[j,k] where i=20, j=30, k=40",
       "|i||k|j strided"},
      {"conv2d(n=2,h=9,w=9,ci=4,co=5,kh=3,kw=3)", "|nyx||rsc|o"},
      {"conv2d(n=2,h=9,w=9,ci=4,co=5,kh=3,kw=3,layout=NCHW)", "|o|ny|crs|x"},
      {"conv2d(n=2,h=9,w=9,ci=4,co=5,kh=1,kw=1)", "|nyx||c|o"},
      {"C[b,i,j] = sum(k) A[b,i,k] * B[b,k,j] where b=2, i=9, j=9, k=9",
       "b|i||k|j"},
      // Depthwise: lanes over a batch index.
      {"C[x,c] = sum(r) X[x+r,c] * W[r,c] where x=9, r=3, c=16",
       "|x||r|c both"},
      {"matmul(m=1,n=30,k=40)", "|||k|j"},
      // Nothing to share, or nothing to sum.
      {"C[i] = sum(k) A[i,k] * B[i,k] where i=20, k=30", "none"},
      {"matmul(m=20,n=30,k=1)", "none"},
      {"C[o] = sum(k) A[k] * B[k] where o=1, k=30", "none"},
      {"C[i,j] = max(k) A[i,k] * B[k,j] where i=20, j=30, k=40", "none"},
      {"C[i,j] = sum(k) A[i,k] + B[k,j] where i=20, j=30, k=40", "none"},
      // A matrix times a vector reads each element once: rows of dots.
      {"C[i] = sum(k) A[i,k] * x[k] where i=20, k=30", "none"},
      // Converted operands are operands.
      {"matmul(m=20,n=30,k=40,dtype=i8)", "|i||k|j"},
      {"C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = C[i,j] + b[j]; E[i,j] = "
       "D[i,j] * C[i,j] where i=20, j=30, k=40",
       "|i||k|j +2"},
      {"C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = C[j,i] where i=20, j=20, "
       "k=40",
       "|i||k|j"},
      {"C[i,j] = sum(k) A[i,k] * B[k,j]; S[i] = sum(j) C[i,j] where i=20, "
       "j=30, "
       "k=40",
       "|i||k|j"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Roles(c.workload), c.roles) << c.workload;
  }
}

TEST(RowsShapeTest, RunsAreTheLongestThatShareRows) {
  const struct {
    const char* workload;
    int first, count, row_dims;
  } kCases[] = {
      {"softmax(rows=8,cols=9)", 0, 4, 1},
      {"softmax(rows=8,cols=9)", 1, 3, 1},
      {"softmax(rows=8,cols=9)", 3, 0, 0},
      // A column reduction needs all rows.
      {"E[i,j] = A[i,j] + 1; S[j] = sum(i) E[i,j] where i=8, j=9", 0, 0, 0},
      {"S[i] = sum(j) A[i,j]; T[i] = S[i] * 2; U[j] = sum(i) T[i] * B[i,j] "
       "where i=8, j=9",
       0, 2, 1},
      // Neighbouring rows are read.
      {"S[i] = sum(j) A[i,j]; T[i] = pad(S[i-1], 0) where i=8, j=9", 0, 0, 0},
      {"S[a,i] = max(j) A[a,i,j]; T[a,i,j] = A[a,i,j] - S[a,i] where a=2, i=8, "
       "j=9",
       0, 2, 1},
  };
  for (const auto& c : kCases) {
    const RowsShape shape =
        MatchRows(Simplify(WorkloadOf(c.workload)), c.first);
    EXPECT_EQ(shape.count, c.count) << c.workload << " from " << c.first;
    if (c.count > 0) {
      EXPECT_EQ(shape.row_dims, c.row_dims) << c.workload;
    }
  }
}

// Calls `visit` with every store and the kinds of the loops around it.
void ForStores(
    const loop::StmtPtr& stmt, std::vector<loop::LoopKind>& around,
    const std::function<void(const loop::Stmt&,
                             const std::vector<loop::LoopKind>&)>& visit) {
  if (stmt->kind == loop::Stmt::Kind::kStore) visit(*stmt, around);
  const bool is_loop = stmt->kind == loop::Stmt::Kind::kFor;
  if (is_loop) around.push_back(stmt->loop);
  for (const loop::StmtPtr& child : stmt->body) {
    ForStores(child, around, visit);
  }
  if (is_loop) around.pop_back();
}

bool HasGuards(const loop::Value& value) {
  return !value.guards.empty() ||
         std::any_of(value.operands.begin(), value.operands.end(),
                     [](const loop::ValuePtr& v) { return HasGuards(*v); });
}

TEST(ContractionLoopsTest, TheMicroKernelHasNoGuardsAndFillsRegisters) {
  const Space space =
      SpaceOf("conv2d(n=1,h=56,w=56,ci=64,co=64,kh=3,kw=3,stride=1,pad=1)");
  const loop::Program program = space.Emit(space.Default());
  int multiplies = 0;
  std::vector<loop::LoopKind> around;
  ForStores(program.kernels.back().body, around,
            [&](const loop::Stmt& store, const auto& loops) {
              EXPECT_FALSE(HasGuards(*store.value));
              if (store.accumulate != Reduction::kSum) return;
              ++multiplies;
              EXPECT_EQ(program.buffers[store.buffer].scope,
                        loop::Scope::kRegister);
              EXPECT_EQ(loops.back(), loop::LoopKind::kVector);
            });
  EXPECT_GE(multiplies, 1);
}

TEST(ContractionLoopsTest, AFusedResultNeverTouchesMemory) {
  const Space space = SpaceOf(
      "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = max(C[i,j] + bias[j], 0) "
      "where i=64, j=64, k=64");
  const loop::Program program = space.Emit(space.Default());
  for (const loop::Buffer& buffer : program.buffers) {
    EXPECT_NE(buffer.name, "C");
  }
  EXPECT_NE(space.Print(space.Default()).find("contraction:2{"),
            std::string::npos);
}

TEST(ContractionLoopsTest, ParallelLoopsStandOutermostAndShareNothing) {
  const Space space = SpaceOf("matmul(m=256,n=256,k=256)", kAvx512, 4);
  const loop::Program program = space.Emit(space.Default());
  EXPECT_EQ(program.threads, 4);
  int parallel = 0;
  std::vector<loop::LoopKind> around;
  ForStores(program.kernels.back().body, around,
            [&](const loop::Stmt&, const auto& loops) {
              if (!loops.empty() && loops[0] == loop::LoopKind::kParallel) {
                ++parallel;
              }
            });
  EXPECT_GE(parallel, 1) << space.Print(space.Default());
}

// "knob: default" of `stores` in the first part; empty: no such knob.
std::string StoresDefault(const std::string& workload,
                          int64_t l3_bytes = 16 << 20) {
  const auto space = Space::Create({.workload = WorkloadOf(workload),
                                    .target = *ParseTarget(kAvx512),
                                    .hints = {.l3_bytes = l3_bytes}});
  const std::string text = space->Print(space->Default());
  const size_t at = text.find("stores=");
  if (at == std::string::npos) return "";
  const size_t begin = at + std::string("stores=").size();
  return text.substr(begin, text.find_first_of(",}", begin) - begin);
}

TEST(StreamingTest, LargeResultsMayBeStreamedAndThoseBeyondTheCachesAre) {
  // A mebibyte of f32 is 512 x 512.
  EXPECT_EQ(StoresDefault("Y[j,i] = X[i,j] where i=512, j=511"), "");
  EXPECT_EQ(StoresDefault("Y[j,i] = X[i,j] where i=512, j=512"), "cached");
  EXPECT_EQ(StoresDefault("Y[j,i] = X[i,j] where i=512, j=512", 1 << 20),
            "streamed");
  EXPECT_EQ(StoresDefault("softmax(rows=512,cols=512)", 1 << 20), "streamed");
  EXPECT_EQ(StoresDefault("elementwise(shape=262144,chain=relu)", 1 << 20),
            "streamed");
  EXPECT_EQ(
      StoresDefault("pool2d(n=1,h=128,w=128,c=64,kh=2,kw=2,stride=2)", 1 << 20),
      "streamed");
  // Its rows do not all begin with a whole vector.
  EXPECT_EQ(StoresDefault("softmax(rows=512,cols=520)", 1 << 20), "cached");
  // A reduction's result is not what takes its time.
  EXPECT_EQ(StoresDefault("reduce(shape=262144x4,axes=1)", 1 << 20), "");
}

TEST(StreamingTest, OnlyWholeVectorsOfTheResultAreStreamed) {
  for (const char* text :
       {"Y[j,i] = X[i,j] where i=521, j=509", "softmax(rows=300,cols=1001)",
        "Y[y,x,c] = max(r,s) X[y*2+r,x*2+s,c] where y=33, x=129, c=70, r=2, "
        "s=2"}) {
    const Space space = SpaceOf(text);
    Random random(1);
    int streamed = 0;
    for (int i = 0; i < 40; ++i) {
      const std::optional<Schedule> schedule = space.Sample(random);
      ASSERT_TRUE(schedule.has_value());
      const std::string printed = space.Print(*schedule);
      // So that whole vectors of all parts have 16 lanes.
      if (printed.find("vec=8") != std::string::npos ||
          printed.find("vec=4") != std::string::npos) {
        continue;
      }
      const bool expected = printed.find("streamed") != std::string::npos;
      const loop::Program program = space.Emit(*schedule);
      int found = 0;
      // Extents of the loops around.
      const std::function<void(const loop::Stmt&, int64_t)> visit =
          [&](const loop::Stmt& stmt, int64_t lanes) {
            if (stmt.kind == loop::Stmt::Kind::kFor) {
              lanes = stmt.loop == loop::LoopKind::kVector ? stmt.extent : 1;
            }
            for (const loop::StmtPtr& child : stmt.body) visit(*child, lanes);
            if (!stmt.streaming) return;
            ++found;
            EXPECT_EQ(lanes, 16) << text << " " << printed;
            EXPECT_EQ(program.buffers[stmt.buffer].scope, loop::Scope::kOutput);
          };
      for (const loop::Kernel& kernel : program.kernels) {
        visit(*kernel.body, 1);
      }
      EXPECT_EQ(found > 0, expected) << text << " " << printed;
      streamed += expected;
    }
    EXPECT_GT(streamed, 0) << text;
  }
}

}  // namespace
}  // namespace regatta
