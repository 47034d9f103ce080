// Hand-written loops, run on every target that this machine can run and
// compared with plain C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "tests/compiler/codegen_support.h"

namespace regatta {
namespace {

using loop::LoopKind;
using loop::Scope;

class LoopCode : public testing::TestWithParam<size_t> {
 protected:
  const Target& target() const { return RunnableTargets()[GetParam()].target; }
};

INSTANTIATE_TEST_SUITE_P(Targets, LoopCode,
                         testing::Range<size_t>(0, RunnableTargets().size()),
                         [](const auto& info) {
                           return RunnableTargets()[info.param].name;
                         });

std::vector<float> Noise(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random.Unit() * 2 - 1);
  }
  return values;
}

TEST_P(LoopCode, AddsVectorsOfEveryLengthWithoutTouchingMemoryBesideThem) {
  for (const int64_t n : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33, 64}) {
    ProgramWriter w;
    const int a = w.Add("a", Scope::kInput, DType::kF32, n);
    const int b = w.Add("b", Scope::kInput, DType::kF32, n);
    const int c = w.Add("c", Scope::kOutput, DType::kF32, n);
    const int i = w.Var();
    w.Kernel(loop::For(i, n, LoopKind::kVector,
                       loop::Store(c, V(i),
                                   loop::Binary(BinaryOp::kAdd, w.Load(a, V(i)),
                                                w.Load(b, V(i))))));
    const LoadedModule module(Build(w.program, target()));
    for (const auto fence :
         {FencedMemory::Fence::kAfter, FencedMemory::Fence::kBefore}) {
      const FencedMemory am(4 * n, 4, fence), bm(4 * n, 4, fence),
          cm(4 * n, 4, fence);
      std::iota(am.as<float>(), am.as<float>() + n, 1.0f);
      std::iota(bm.as<float>(), bm.as<float>() + n, 100.0f);
      ASSERT_EQ(module.Call({am.data(), bm.data(), cm.data()}), 0);
      for (int64_t k = 0; k < n; ++k) {
        ASSERT_EQ(cm.as<float>()[k], 101.0f + 2 * k) << "n " << n;
      }
    }
  }
}

// y[r, x] = sum over 3x3 of image, 5 outside the image.
TEST_P(LoopCode, GuardedLoadsGiveThePadAndTouchNoMemoryOutside) {
  constexpr int64_t kH = 5, kW = 19;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kF32, kH * kW);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, kH * kW);
  const int r = w.Var(), c0 = w.Var(), dr = w.Var(), dc = w.Var(), c = w.Var();
  const Affine row = V(r) + V(dr) + Affine(-1);
  const Affine column = V(c) + V(dc) + Affine(-1);
  w.Kernel(loop::For(
      r, kH, LoopKind::kSerial,
      loop::Block(
          {loop::For(c0, kW, LoopKind::kVector,
                     loop::Store(y, V(r, kW) + V(c0), loop::Const(0))),
           loop::For(
               dr, 3, LoopKind::kSerial,
               loop::For(
                   dc, 3, LoopKind::kUnrolled,
                   loop::For(c, kW, LoopKind::kVector,
                             loop::Store(y, V(r, kW) + V(c),
                                         w.Load(x, row * kW + column,
                                                {{row, kH}, {column, kW}}, 5),
                                         Reduction::kSum))))})));
  const LoadedModule module(Build(w.program, target()));
  const FencedMemory xm(4 * kH * kW, 4), ym(4 * kH * kW, 4);
  const std::vector<float> image = Noise(kH * kW, 1);
  std::copy(image.begin(), image.end(), xm.as<float>());
  ASSERT_EQ(module.Call({xm.data(), ym.data()}), 0);
  for (int64_t i = 0; i < kH; ++i) {
    for (int64_t j = 0; j < kW; ++j) {
      float sum = 0;
      for (int64_t p = i - 1; p <= i + 1; ++p) {
        for (int64_t q = j - 1; q <= j + 1; ++q) {
          const bool inside = p >= 0 && p < kH && q >= 0 && q < kW;
          sum += inside ? image[p * kW + q] : 5;
        }
      }
      EXPECT_NEAR(ym.as<float>()[i * kW + j], sum, 1e-4) << i << "," << j;
    }
  }
}

// The offset does not depend on the lane, the guard does; and the reverse.
TEST_P(LoopCode, GuardsAndOffsetsMayDependOnTheLaneSeparately) {
  constexpr int64_t kN = 21;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kF32, kN);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, kN);
  const int z = w.Add("z", Scope::kOutput, DType::kF32, 4 * kN);
  const int i = w.Var(), o = w.Var(), j = w.Var();
  w.Kernel(loop::Block(
      {loop::For(
           i, kN, LoopKind::kVector,
           loop::Store(y, V(i),
                       w.Load(x, Affine(3), {{V(i) + Affine(-4), 9}}, -1))),
       loop::For(o, 4, LoopKind::kSerial,
                 loop::For(j, kN, LoopKind::kVector,
                           loop::Store(z, V(o, kN) + V(j),
                                       w.Load(x, V(j), {{V(o) + Affine(-1), 2}},
                                              -2))))}));
  const LoadedModule module(Build(w.program, target()));
  const FencedMemory xm(4 * kN, 4), ym(4 * kN, 4), zm(16 * kN, 4);
  std::iota(xm.as<float>(), xm.as<float>() + kN, 10.0f);
  ASSERT_EQ(module.Call({xm.data(), ym.data(), zm.data()}), 0);
  for (int64_t k = 0; k < kN; ++k) {
    EXPECT_EQ(ym.as<float>()[k], k >= 4 && k < 13 ? 13 : -1) << k;
    for (int64_t p = 0; p < 4; ++p) {
      EXPECT_EQ(zm.as<float>()[p * kN + k], p == 1 || p == 2 ? 10.0f + k : -2);
    }
  }
}

TEST_P(LoopCode, LoadsAndStoresWithAnyStride) {
  constexpr int64_t kN = 19;
  for (const int64_t stride : {-3, -1, 0, 2, 3, 7}) {
    for (const int64_t store_stride : {1, 2, -1}) {
      const int64_t span = std::abs(stride) * (kN - 1) + 1;
      const int64_t store_span = std::abs(store_stride) * (kN - 1) + 1;
      ProgramWriter w;
      const int x = w.Add("x", Scope::kInput, DType::kF32, span);
      const int y = w.Add("y", Scope::kOutput, DType::kF32, store_span);
      const int i = w.Var();
      const Affine from =
          V(i, stride) + Affine(stride < 0 ? -stride * (kN - 1) : 0);
      const Affine to =
          V(i, store_stride) + Affine(store_stride < 0 ? kN - 1 : 0);
      w.Kernel(loop::For(i, kN, LoopKind::kVector,
                         loop::Store(y, to, w.Load(x, from))));
      const LoadedModule module(Build(w.program, target()));
      const FencedMemory xm(4 * span, 4), ym(4 * store_span, 4);
      std::iota(xm.as<float>(), xm.as<float>() + span, 0.0f);
      std::fill_n(ym.as<float>(), store_span, -1.0f);
      ASSERT_EQ(module.Call({xm.data(), ym.data()}), 0);
      for (int64_t k = 0; k < kN; ++k) {
        const int64_t source = stride * k + (stride < 0 ? span - 1 : 0);
        const int64_t place =
            store_stride * k + (store_stride < 0 ? store_span - 1 : 0);
        ASSERT_EQ(ym.as<float>()[place], source)
            << "stride " << stride << " to " << store_stride << " at " << k;
        if (store_stride == 2 && k + 1 < kN) {
          ASSERT_EQ(ym.as<float>()[place + 1], -1);
        }
      }
    }
  }
}

TEST_P(LoopCode, ReducesAcrossLanes) {
  for (const int64_t n : {3, 16, 23}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kProd,
                                      Reduction::kMax, Reduction::kMin}) {
      ProgramWriter w;
      const int x = w.Add("x", Scope::kInput, DType::kF32, 4 * n);
      const int y = w.Add("y", Scope::kOutput, DType::kF32, 4);
      const int r = w.Var(), i = w.Var();
      w.Kernel(loop::For(
          r, 4, LoopKind::kSerial,
          loop::Block(
              {loop::Store(y, V(r),
                           loop::Const(loop::Identity(reduction, DType::kF32))),
               loop::For(i, n, LoopKind::kVector,
                         loop::Store(y, V(r), w.Load(x, V(r, n) + V(i)),
                                     reduction))})));
      const LoadedModule module(Build(w.program, target()));
      const FencedMemory xm(16 * n, 4), ym(16, 4);
      const std::vector<float> x_values = Noise(4 * n, n);
      std::copy(x_values.begin(), x_values.end(), xm.as<float>());
      ASSERT_EQ(module.Call({xm.data(), ym.data()}), 0);
      for (int64_t row = 0; row < 4; ++row) {
        const float* v = x_values.data() + row * n;
        double expected = v[0];
        for (int64_t k = 1; k < n; ++k) {
          expected = reduction == Reduction::kSum    ? expected + v[k]
                     : reduction == Reduction::kProd ? expected * v[k]
                     : reduction == Reduction::kMax
                         ? std::max<double>(expected, v[k])
                         : std::min<double>(expected, v[k]);
        }
        EXPECT_NEAR(ym.as<float>()[row], expected, 1e-5);
      }
    }
  }
}

// C[m, n] = A B with mr x nr accumulators in registers, `unroll` copies of the
// loop over k, and a remainder of that loop.
loop::Program RegisterTileGemm(int64_t mr, int64_t nr, int64_t k,
                               int64_t unroll) {
  ProgramWriter w;
  const int a = w.Add("a", Scope::kInput, DType::kF32, mr * k);
  const int b = w.Add("b", Scope::kInput, DType::kF32, k * nr);
  const int c = w.Add("c", Scope::kOutput, DType::kF32, mr * nr);
  const int acc = w.Add("acc", Scope::kRegister, DType::kF32, mr * nr);
  const auto tile = [&](auto body) {
    const int i = w.Var(), j = w.Var();
    return loop::For(i, mr, LoopKind::kUnrolled,
                     loop::For(j, nr, LoopKind::kVector, body(V(i), V(j))));
  };
  const int p = w.Var();
  w.Kernel(loop::Block(
      {tile([&](const Affine& i, const Affine& j) {
         return loop::Store(acc, i * nr + j, loop::Const(0));
       }),
       loop::For(p, k, LoopKind::kSerial,
                 tile([&](const Affine& i, const Affine& j) {
                   return loop::Store(
                       acc, i * nr + j,
                       loop::Binary(BinaryOp::kMul, w.Load(a, i * k + V(p)),
                                    w.Load(b, V(p, nr) + j)),
                       Reduction::kSum);
                 }),
                 unroll),
       tile([&](const Affine& i, const Affine& j) {
         return loop::Store(c, i * nr + j, w.Load(acc, i * nr + j));
       })}));
  return w.program;
}

TEST_P(LoopCode, RegisterTilesMultiply) {
  for (const auto& [mr, nr, k, unroll] :
       {std::tuple(1, 1, 9, 1), std::tuple(3, 16, 10, 4),
        std::tuple(14, 32, 7, 2), std::tuple(5, 21, 13, 3),
        std::tuple(2, 5, 3, 8)}) {
    const LoadedModule module(
        Build(RegisterTileGemm(mr, nr, k, unroll), target()));
    const FencedMemory am(4 * mr * k, 4), bm(4 * k * nr, 4), cm(4 * mr * nr, 4);
    const std::vector<float> av = Noise(mr * k, 1), bv = Noise(k * nr, 2);
    std::copy(av.begin(), av.end(), am.as<float>());
    std::copy(bv.begin(), bv.end(), bm.as<float>());
    ASSERT_EQ(module.Call({am.data(), bm.data(), cm.data()}), 0);
    for (int64_t i = 0; i < mr; ++i) {
      for (int64_t j = 0; j < nr; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(av[i * k + p]) * bv[p * nr + j];
        }
        ASSERT_NEAR(cm.as<float>()[i * nr + j], sum, 1e-5)
            << mr << "x" << nr << " at " << i << "," << j;
      }
    }
  }
}

// A register buffer written as vectors and read as single elements, reversed
// elements and overlapping vectors.
TEST_P(LoopCode, RegistersMayBeReadInOtherShapesThanTheyWereWritten) {
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kF32, 24);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, 24 + 24 + 20);
  const int reg = w.Add("reg", Scope::kRegister, DType::kF32, 24);
  const int i = w.Var(), j = w.Var(), k = w.Var(), l = w.Var();
  w.Kernel(loop::Block(
      {loop::For(i, 24, LoopKind::kVector,
                 loop::Store(reg, V(i), w.Load(x, V(i)))),
       loop::Store(reg, Affine(5), loop::Const(77)),
       loop::For(j, 24, LoopKind::kUnrolled,
                 loop::Store(y, V(j), w.Load(reg, V(j)))),
       loop::For(
           k, 24, LoopKind::kVector,
           loop::Store(y, V(k) + Affine(24), w.Load(reg, Affine(23) - V(k)))),
       loop::For(
           l, 20, LoopKind::kVector,
           loop::Store(y, V(l) + Affine(48), w.Load(reg, V(l) + Affine(3))))}));
  const LoadedModule module(Build(w.program, target()));
  const FencedMemory xm(4 * 24, 4), ym(4 * 68, 4);
  std::iota(xm.as<float>(), xm.as<float>() + 24, 0.0f);
  ASSERT_EQ(module.Call({xm.data(), ym.data()}), 0);
  const auto expected = [](int64_t e) { return e == 5 ? 77.0f : 1.0f * e; };
  for (int64_t e = 0; e < 24; ++e) {
    EXPECT_EQ(ym.as<float>()[e], expected(e));
    EXPECT_EQ(ym.as<float>()[24 + e], expected(23 - e));
    if (e < 20) EXPECT_EQ(ym.as<float>()[48 + e], expected(3 + e));
  }
}

// A value that was loaded must be loaded again after a store to the same
// element, even when the store happens in an inner loop.
TEST_P(LoopCode, StoresAreSeenByLaterLoads) {
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kF32, 1);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, 8);
  const int t = w.Add("t", Scope::kWorkspace, DType::kF32, 4);
  const int o = w.Var(), i = w.Var(), j = w.Var();
  const auto doubled =
      loop::Binary(BinaryOp::kAdd, w.Load(t, Affine(1)), w.Load(t, Affine(1)));
  w.Kernel(loop::Block(
      {loop::Store(t, Affine(1), w.Load(x, Affine(0))),
       loop::For(
           o, 4, LoopKind::kSerial,
           loop::Block({loop::Store(y, V(o), w.Load(t, Affine(1))),
                        loop::For(i, 3, LoopKind::kSerial,
                                  loop::Store(t, Affine(1), doubled)),
                        loop::For(j, 2, LoopKind::kUnrolled,
                                  loop::Store(y, V(o) + V(j) + Affine(3),
                                              w.Load(t, Affine(1))))}))}));
  const LoadedModule module(Build(w.program, target()));
  float in = 1, out[8] = {};
  ASSERT_EQ(module.Call({&in, out}), 0);
  // Each pass multiplies t by 8; y[o] is t before, y[o+3] and y[o+4] after it,
  // later stores to the same element winning.
  float expected[8] = {};
  float t_value = 1;
  for (int pass = 0; pass < 4; ++pass) {
    expected[pass] = t_value;
    t_value *= 8;
    expected[pass + 3] = t_value;
    expected[pass + 4] = t_value;
  }
  for (int k = 0; k < 8; ++k) EXPECT_EQ(out[k], expected[k]) << k;
}

// Whether or not the caller's memory is aligned, and with parts of vectors.
TEST_P(LoopCode, StreamingStoresWriteWhatOrdinaryOnesWould) {
  constexpr int64_t kRows = 5, kColumns = 77;
  for (const DType type : {DType::kF32, DType::kI8}) {
    ProgramWriter w;
    const int64_t bytes = DTypeBytes(type);
    const int x = w.Add("x", Scope::kInput, type, kRows * kColumns);
    const int y = w.Add("y", Scope::kOutput, type, kRows * kColumns);
    const int r = w.Var(), v = w.Var(), i = w.Var(), j = w.Var();
    const auto copy = [&](const Affine& at) {
      return loop::Store(y, at, w.Load(x, at), Reduction::kNone,
                         /*streaming=*/true);
    };
    w.Kernel(loop::For(
        r, kRows, LoopKind::kSerial,
        loop::Block(
            {loop::For(v, 2, LoopKind::kSerial,
                       loop::For(i, 32, LoopKind::kVector,
                                 copy(V(r, kColumns) + V(v, 32) + V(i)))),
             loop::For(j, 13, LoopKind::kVector,
                       copy(V(r, kColumns) + V(j) + Affine(64)))})));
    const LoadedModule module(Build(w.program, target()));
    for (const int64_t off : {0, 4, 16, 32, 60}) {
      const int64_t size = kRows * kColumns * bytes;
      // `off` bytes past a multiple of 64, up to the fence.
      const FencedMemory xm(size + (64 - size % 64) + off, 4);
      const FencedMemory ym(size + (64 - size % 64) + off, 4);
      std::iota(xm.as<uint8_t>(), xm.as<uint8_t>() + size, uint8_t{1});
      std::fill_n(ym.as<uint8_t>(), size, uint8_t{0});
      ASSERT_EQ(module.Call({xm.data(), ym.data()}), 0);
      EXPECT_TRUE(std::equal(xm.as<uint8_t>(), xm.as<uint8_t>() + size,
                             ym.as<uint8_t>()))
          << target().ToString() << " off " << off;
    }
  }
}

TEST_P(LoopCode, SelectsComparesAndCountsLanes) {
  constexpr int64_t kN = 37;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kF32, kN);
  const int y = w.Add("y", Scope::kOutput, DType::kF32, kN);
  const int z = w.Add("z", Scope::kOutput, DType::kI32, kN);
  const int i = w.Var(), j = w.Var();
  const auto index = loop::Index(V(i, 2) + Affine(-30), DType::kF32);
  w.Kernel(loop::Block(
      {loop::For(i, kN, LoopKind::kVector,
                 loop::Store(y, V(i),
                             loop::Select(loop::Binary(BinaryOp::kLess,
                                                       w.Load(x, V(i)), index),
                                          loop::Const(-7), index))),
       loop::For(j, kN, LoopKind::kVector,
                 loop::Store(z, V(j),
                             loop::Binary(BinaryOp::kDiv,
                                          loop::Index(V(j, 9), DType::kI32),
                                          loop::Const(4, DType::kI32))))}));
  const LoadedModule module(Build(w.program, target()));
  const FencedMemory xm(4 * kN, 4), ym(4 * kN, 4), zm(4 * kN, 4);
  const std::vector<float> xv = Noise(kN, 3);
  std::copy(xv.begin(), xv.end(), xm.as<float>());
  ASSERT_EQ(module.Call({xm.data(), ym.data(), zm.data()}), 0);
  for (int64_t k = 0; k < kN; ++k) {
    const float number = 2.0f * k - 30;
    EXPECT_EQ(ym.as<float>()[k], xv[k] < number ? -7 : number);
    EXPECT_EQ(zm.as<int32_t>()[k], 9 * k / 4);
  }
}

}  // namespace
}  // namespace regatta
