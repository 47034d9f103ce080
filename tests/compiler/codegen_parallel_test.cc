// Parallel loops: results, threads' own buffers, callers from several threads,
// loading and unloading, forks.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/compiler/codegen_support.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::Scope;

constexpr int64_t kRows = 37, kColumns = 100;

// sums[r] = sum over a row, through a scratch row of the thread's own.
loop::Program RowSums(int threads) {
  ProgramWriter w(threads);
  const int x = w.Add("x", Scope::kInput, DType::kF32, kRows * kColumns);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, kRows);
  const int row = w.Add("row", Scope::kWorkspace, DType::kF32, kColumns);
  w.program.buffers[row].per_thread = true;
  const int r = w.Var(), i = w.Var(), j = w.Var();
  w.Kernel(loop::For(
      r, kRows, LoopKind::kParallel,
      loop::Block(
          {loop::For(i, kColumns, LoopKind::kVector,
                     loop::Store(row, V(i), w.Load(x, V(r, kColumns) + V(i)))),
           loop::Store(y, V(r), loop::Const(0)),
           loop::For(
               j, kColumns, LoopKind::kVector,
               loop::Store(y, V(r), w.Load(row, V(j)), Reduction::kSum))})));
  return w.program;
}

struct Data {
  Data() : x(kRows * kColumns), y(kRows, -1) {
    std::iota(x.begin(), x.end(), 0.0f);
  }
  bool Right() const {
    for (int64_t r = 0; r < kRows; ++r) {
      // Sum of 100 consecutive integers, exact in a float.
      const float expected =
          static_cast<float>(kColumns * (r * kColumns) + 99 * 100 / 2);
      if (y[r] != expected) return false;
    }
    return true;
  }
  std::vector<float> x;
  std::vector<float> y;
};

TEST(ParallelCode, EveryIterationRunsOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8, 64}) {
    const Module built = Build(RowSums(threads), HostForTests());
    EXPECT_EQ(built.threads, threads);
    const LoadedModule module(built);
    for (int repeat = 0; repeat < 50; ++repeat) {
      Data data;
      ASSERT_EQ(module.Call({data.x.data(), data.y.data()}), 0);
      ASSERT_TRUE(data.Right()) << threads << " threads, call " << repeat;
    }
  }
}

TEST(ParallelCode, EachThreadHasItsOwnSlotOfAPerThreadBuffer) {
  EXPECT_GE(Build(RowSums(8), HostForTests()).workspace_bytes,
            8 * kColumns * 4);
  EXPECT_LT(Build(RowSums(1), HostForTests()).workspace_bytes,
            2 * kColumns * 4);
}

TEST(ParallelCode, SeveralThreadsMayCallAtOnce) {
  const LoadedModule module(Build(RowSums(4), HostForTests()));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        Data data;
        if (module.Call({data.x.data(), data.y.data()}) != 0 || !data.Right()) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

int64_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(ParallelCode, UnloadingJoinsTheThreads) {
  const Module built = Build(RowSums(4), HostForTests());
  const int64_t before = ThreadsOfThisProcess();
  for (int repeat = 0; repeat < 10; ++repeat) {
    {
      const LoadedModule module(built);
      EXPECT_EQ(ThreadsOfThisProcess(), before);  // none until needed
      Data data;
      ASSERT_EQ(module.Call({data.x.data(), data.y.data()}), 0);
      ASSERT_TRUE(data.Right());
      EXPECT_EQ(ThreadsOfThisProcess(), before + 3);
    }
    // A joined thread's entry may outlive the join by a moment.
    for (int i = 0; i < 1000000 && ThreadsOfThisProcess() != before; ++i) {
    }
    ASSERT_EQ(ThreadsOfThisProcess(), before);
  }
  // And a module whose pool never started.
  const LoadedModule unused(built);
}

TEST(ParallelCode, UnloadingLeavesNoMemory) {
  const Module built = Build(RowSums(8), HostForTests());
  const auto use = [&] {
    const LoadedModule module(built);
    Data data;
    ASSERT_EQ(module.Call({data.x.data(), data.y.data()}), 0);
  };
  constexpr int kRepeats = 40;
  for (int repeat = 0; repeat < kRepeats; ++repeat) use();  // caches fill
  const size_t before = mallinfo2().uordblks;
  for (int repeat = 0; repeat < kRepeats; ++repeat) use();
  // Less than a worker each.
  EXPECT_LT(mallinfo2().uordblks, before + kRepeats * 64);
}

TEST(ParallelCode, AForkedChildStartsAPoolOfItsOwn) {
  const LoadedModule module(Build(RowSums(3), HostForTests()));
  Data data;
  ASSERT_EQ(module.Call({data.x.data(), data.y.data()}), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Data own;
    const int code = module.Call({own.x.data(), own.y.data()});
    _exit(code == 0 && own.Right() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_EQ(module.Call({data.x.data(), data.y.data()}), 0);
  EXPECT_TRUE(data.Right());
}

TEST(ParallelCode, KernelsRunOneAfterTheOther) {
  // t[i] = 2 x[i] in parallel, then y[i] = t[n-1-i] in parallel.
  constexpr int64_t kN = 1000;
  ProgramWriter w(4);
  const int x = w.Add("x", Scope::kInput, DType::kF32, kN);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, kN);
  const int t = w.Add("t", Scope::kWorkspace, DType::kF32, kN);
  const int i = w.Var(), j = w.Var();
  w.Kernel(loop::For(i, kN, LoopKind::kParallel,
                     loop::Store(t, V(i),
                                 loop::Binary(BinaryOp::kMul, w.Load(x, V(i)),
                                              loop::Const(2)))));
  w.Kernel(loop::For(j, kN, LoopKind::kParallel,
                     loop::Store(y, V(j), w.Load(t, Affine(kN - 1) - V(j)))));
  const LoadedModule module(Build(w.program, HostForTests()));
  std::vector<float> in(kN), out(kN);
  std::iota(in.begin(), in.end(), 1.0f);
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::fill(out.begin(), out.end(), 0.0f);
    ASSERT_EQ(module.Call({in.data(), out.data()}), 0);
    for (int64_t k = 0; k < kN; ++k) ASSERT_EQ(out[k], 2.0f * (kN - k));
  }
}

}  // namespace
}  // namespace regatta
