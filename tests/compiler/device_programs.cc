#include "tests/compiler/device_programs.h"

#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/lower/intrinsics.h"
#include "tests/compiler/codegen_support.h"

namespace regatta {
namespace {

using loop::For;
using loop::LoopKind;
using loop::StmtPtr;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The loop ids that the whole kernel shares.
struct Places {
  int group_row, group_column, thread_row, thread_column, slice;
};

// Copies the `rows` x `columns` tile of a matrix at (`row`, `column`) into
// `local`, each thread some rows and columns of it.
StmtPtr StageTile(ProgramWriter& w, int local, int matrix, int64_t rows,
                  int64_t columns, Affine row, Affine column, int64_t row_bound,
                  int64_t column_bound, const Places& at, int64_t thread_rows,
                  int64_t thread_columns) {
  const int u = w.Var(), v = w.Var();
  const Affine r = V(at.thread_row) + V(u, thread_rows);
  const Affine c = V(at.thread_column) + V(v, thread_columns);
  const loop::ValuePtr value =
      w.Load(matrix, (row + r) * column_bound + column + c,
             {{row + r, row_bound}, {column + c, column_bound}}, 0);
  return For(u, CeilDiv(rows, thread_rows), LoopKind::kSerial,
             For(v, CeilDiv(columns, thread_columns), LoopKind::kUnrolled,
                 loop::If({{r, rows}, {c, columns}},
                          loop::Store(local, r * columns + c, value))));
}

}  // namespace

loop::Program TiledMatmul::Emit() const {
  CHECK(bm % rm == 0 && bn % rn == 0);
  const int64_t thread_rows = bm / rm, thread_columns = bn / rn;
  const DType sum = AccumulatorType(dtype);
  ProgramWriter w;
  const int a = w.Add("A", loop::Scope::kInput, dtype, m * k);
  const int b = w.Add("B", loop::Scope::kInput, dtype, k * n);
  const int c = w.Add("C", loop::Scope::kOutput, out, m * n);
  const int a_tile = w.Add("a_tile", loop::Scope::kLocal, dtype, bm * bk);
  const int b_tile = w.Add("b_tile", loop::Scope::kLocal, dtype, bk * bn);
  const int acc = w.Add("acc", loop::Scope::kRegister, sum, rm * rn);
  const Places at{w.Var(), w.Var(), w.Var(), w.Var(), w.Var()};
  const Affine row = V(at.group_row, bm), column = V(at.group_column, bn);

  // Vector loops over the columns of a thread's tile, unrolled ones over rows.
  const auto each = [&](const std::function<StmtPtr(Affine, Affine)>& body) {
    const int i = w.Var(), j = w.Var();
    return For(i, rm, LoopKind::kUnrolled,
               For(j, rn, LoopKind::kVector, body(V(i), V(j))));
  };
  std::vector<StmtPtr> thread;
  thread.push_back(each([&](Affine i, Affine j) {
    return loop::Store(acc, i * rn + j, loop::Const(0, sum));
  }));

  std::vector<StmtPtr> slice;
  slice.push_back(StageTile(w, a_tile, a, bm, bk, row, V(at.slice, bk), m, k,
                            at, thread_rows, thread_columns));
  slice.push_back(StageTile(w, b_tile, b, bk, bn, V(at.slice, bk), column, k, n,
                            at, thread_rows, thread_columns));
  if (first_barrier) slice.push_back(loop::Barrier());
  const int kk = w.Var();
  slice.push_back(For(
      kk, bk, LoopKind::kSerial, each([&](Affine i, Affine j) {
        const Affine in_a = (V(at.thread_row, rm) + i) * bk + V(kk);
        const Affine in_b = V(kk, bn) + V(at.thread_column, rn) + j;
        return loop::Store(
            acc, i * rn + j,
            loop::Binary(BinaryOp::kMul, loop::Cast(w.Load(a_tile, in_a), sum),
                         loop::Cast(w.Load(b_tile, in_b), sum)),
            Reduction::kSum);
      }),
      2));
  if (second_barrier) slice.push_back(loop::Barrier());
  thread.push_back(For(at.slice, CeilDiv(k, bk), LoopKind::kSerial,
                       loop::Block(std::move(slice))));

  thread.push_back(each([&](Affine i, Affine j) {
    const Affine r = row + V(at.thread_row, rm) + i;
    const Affine s = column + V(at.thread_column, rn) + j;
    return loop::If(
        {{r, m}, {s, n}},
        loop::Store(c, r * n + s, loop::Cast(w.Load(acc, i * rn + j), out)));
  }));

  StmtPtr body = loop::Block(std::move(thread));
  body = For(at.thread_column, thread_columns, LoopKind::kThread, body);
  body = For(at.thread_row, thread_rows, LoopKind::kThread, body);
  body = For(at.group_column, CeilDiv(n, bn), LoopKind::kGroup, body);
  body = For(at.group_row, CeilDiv(m, bm), LoopKind::kGroup, body);
  w.Kernel(std::move(body));
  return w.program;
}

loop::Program AsyncCopies::Emit() const {
  constexpr int64_t kHalf = 48, kThreads = 12;
  ProgramWriter w;
  const int x = w.Add("x", loop::Scope::kInput, DType::kF32, 2 * kHalf);
  const int y = w.Add("y", loop::Scope::kOutput, DType::kF32, 2 * kHalf);
  const int halves[] = {
      w.Add("first", loop::Scope::kLocal, DType::kF32, kHalf),
      w.Add("second", loop::Scope::kLocal, DType::kF32, kHalf)};
  const int t = w.Var();
  std::vector<StmtPtr> body;
  for (int64_t half = 0; half < 2; ++half) {
    body.push_back(loop::CallIntrinsic(
        loop::CopyAsync(16),
        {{.buffer = halves[half], .offset = V(t, 4)},
         {.buffer = x, .offset = V(t, 4) + Affine(half * kHalf)}}));
    body.push_back(loop::CallIntrinsic(loop::kCommitAsync));
  }
  for (int64_t half = 0; half < 2; ++half) {
    if (half == 1 || first_wait) {
      body.push_back(
          loop::CallIntrinsic(loop::kWaitAsync, {{.number = 1 - half}}));
    }
    body.push_back(loop::Barrier());
    const int i = w.Var();
    body.push_back(For(
        i, 4, LoopKind::kUnrolled,
        loop::Store(
            y, V(t, 4) + V(i) + Affine(half * kHalf),
            w.Load(halves[half], V(t, -4) + V(i, -1) + Affine(kHalf - 1)))));
  }
  w.Kernel(For(t, kThreads, LoopKind::kThread, loop::Block(std::move(body))));
  return w.program;
}

}  // namespace regatta
