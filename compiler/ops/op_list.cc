#include <vector>

#include "compiler/ops/batch_matmul.h"
#include "compiler/ops/binary.h"
#include "compiler/ops/concat.h"
#include "compiler/ops/conv2d.h"
#include "compiler/ops/conv2d_transpose.h"
#include "compiler/ops/dense.h"
#include "compiler/ops/depthwise_conv2d.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/gather.h"
#include "compiler/ops/layer_norm.h"
#include "compiler/ops/log_softmax.h"
#include "compiler/ops/matmul.h"
#include "compiler/ops/op.h"
#include "compiler/ops/pool2d.h"
#include "compiler/ops/reduce.h"
#include "compiler/ops/rms_norm.h"
#include "compiler/ops/slice.h"
#include "compiler/ops/softmax.h"
#include "compiler/ops/transpose.h"

namespace regatta {

// THE list, by name. A new operator is its file and a line here.
absl::Span<const Op> Ops() {
  static const std::vector<Op>* const ops = new std::vector<Op>{
      BatchMatmulOp(),     BinaryOperatorOp(),  ConcatOp(),
      Conv2dOp(),          Conv2dTransposeOp(), DenseOp(),
      DepthwiseConv2dOp(), ElementwiseOp(),     GatherOp(),
      LayerNormOp(),       LogSoftmaxOp(),      MatmulOp(),
      Pool2dOp(),          ReduceOp(),          RmsNormOp(),
      SliceOp(),           SoftmaxOp(),         TransposeOp(),
  };
  return *ops;
}

}  // namespace regatta
