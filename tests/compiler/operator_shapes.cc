#include "tests/compiler/operator_shapes.h"

#include <map>

namespace regatta {
namespace {

const std::map<std::string, std::vector<std::string>>& Shapes() {
  static const auto& shapes = *new std::map<std::string,
                                            std::vector<std::string>>{
      {"batch_matmul",
       {"batch_matmul(b=4,m=32,n=64,k=32)", "batch_matmul(b=3,m=29,n=66,k=31)",
        "batch_matmul(b=5,m=16,n=64,k=40,dtype=f16)",
        "batch_matmul(b=2,m=37,n=48,k=50,dtype=bf16,activation=relu)",
        "batch_matmul(b=3,m=33,n=52,k=24,dtype=i8)"}},
      {"binary",
       {"binary(a=64x512,b=64x512)",
        "binary(a=61x67x5,b=5,kind=mul,activation=relu)",
        "binary(a=120x1,b=1x130,kind=sub)",
        "binary(a=90x133,b=133,kind=div,dtype=f16)",
        "binary(a=90x133,b=90x1,kind=min,activation=gelu,dtype=bf16)",
        "binary(a=64x256,b=64x256,dtype=i8)"}},
      {"concat",
       {"concat(shape=64x256,axis=1,sizes=96x160)",
        "concat(shape=101x67,axis=0,sizes=40x61)",
        "concat(shape=17x40x23,axis=1,sizes=3x20x17)",
        "concat(shape=65x129,axis=1,sizes=60x69,dtype=f16)",
        "concat(shape=65x129,axis=0,sizes=32x33,dtype=bf16)",
        "concat(shape=64x200,axis=1,sizes=72x128,dtype=i8)"}},
      {"conv2d",
       {"conv2d(n=1,h=12,w=12,ci=16,co=16,kh=3,kw=3,pad=1)",
        "conv2d(n=1,h=13,w=11,ci=10,co=20,kh=3,kw=3,stride=2,pad=1,bias=yes,"
        "activation=relu)",
        "conv2d(n=2,h=14,w=15,ci=12,co=24,kh=1,kw=1)",
        "conv2d(n=1,h=10,w=16,ci=12,co=12,kh=3,kw=3,pad=1,layout=NCHW)",
        "conv2d(n=1,h=9,w=10,ci=16,co=16,kh=3,kw=3,pad=1,layout=NCHWc,"
        "block=8)",
        "conv2d(n=1,h=11,w=11,ci=12,co=20,kh=3,kw=3,groups=2,dilation=2,"
        "dtype=f16)",
        "conv2d(n=1,h=10,w=10,ci=12,co=16,kh=3,kw=3,pad=1,dtype=bf16)",
        "conv2d(n=1,h=10,w=11,ci=16,co=18,kh=3,kw=3,pad=1,dtype=i8,"
        "out_dtype=i8)"}},
      {"conv2d_transpose",
       {"conv2d_transpose(n=1,h=8,w=8,ci=12,co=16,kh=4,kw=4,stride=2,pad=1)",
        "conv2d_transpose(n=1,h=9,w=7,ci=10,co=19,kh=3,kw=3,stride=2,pad=1,"
        "out_pad=1,bias=yes,activation=relu)",
        "conv2d_transpose(n=1,h=8,w=9,ci=10,co=12,kh=3,kw=3,layout=NCHW)",
        "conv2d_transpose(n=1,h=7,w=8,ci=12,co=16,kh=3,kw=3,dtype=f16)",
        "conv2d_transpose(n=1,h=7,w=8,ci=12,co=16,kh=3,kw=3,dtype=bf16)",
        "conv2d_transpose(n=1,h=7,w=8,ci=12,co=16,kh=3,kw=3,dtype=i8)"}},
      {"dense",
       {"dense(m=64,n=64,k=64,activation=relu)",
        "dense(m=61,n=67,k=59,activation=gelu)", "dense(m=1,n=500,k=300)",
        "dense(m=50,n=70,k=65,activation=tanh,dtype=f16)",
        "dense(m=50,n=70,k=65,activation=relu,dtype=bf16,out_dtype=f32)",
        "dense(m=48,n=72,k=64,activation=relu,dtype=i8,out_dtype=i8)"}},
      {"depthwise_conv2d",
       {"depthwise_conv2d(n=1,h=20,w=20,c=32,kh=3,kw=3,pad=1)",
        "depthwise_conv2d(n=2,h=17,w=15,c=21,kh=3,kw=3,stride=2,pad=1)",
        "depthwise_conv2d(n=1,h=16,w=18,c=20,kh=3,kw=3,pad=1,layout=NCHW,"
        "bias=yes,activation=relu)",
        "depthwise_conv2d(n=1,h=15,w=14,c=24,kh=3,kw=3,pad=1,dtype=f16)",
        "depthwise_conv2d(n=1,h=15,w=14,c=19,kh=3,kw=3,dilation=2,"
        "dtype=bf16)",
        "depthwise_conv2d(n=1,h=15,w=14,c=24,kh=3,kw=3,dtype=i8,"
        "out_dtype=i8)"}},
      {"elementwise",
       {"elementwise(shape=64x512)", "elementwise(shape=61x67x3,chain=gelu)",
        "elementwise(shape=9001,chain=square+neg+exp)",
        "elementwise(shape=90x133,chain=silu,dtype=f16)",
        "elementwise(shape=90x133,chain=abs+sqrt,dtype=bf16)"}},
      {"gather",
       {"gather(rows=64,cols=256,count=64)",
        "gather(rows=50,cols=131,count=77)",
        "gather(rows=64,cols=129,count=40,dtype=f16)",
        "gather(rows=64,cols=128,count=40,dtype=bf16)",
        "gather(rows=64,cols=128,count=40,dtype=i8)"}},
      {"layer_norm",
       {"layer_norm(rows=64,cols=256)", "layer_norm(rows=37,cols=131)",
        "layer_norm(rows=3,cols=3001)",
        "layer_norm(rows=48,cols=130,dtype=f16)",
        "layer_norm(rows=48,cols=130,dtype=bf16)"}},
      {"log_softmax",
       {"log_softmax(rows=64,cols=256)", "log_softmax(rows=37,cols=131)",
        "log_softmax(rows=3,cols=3001)",
        "log_softmax(rows=48,cols=130,dtype=f16)",
        "log_softmax(rows=48,cols=130,dtype=bf16)"}},
      {"matmul",
       {"matmul(m=64,n=64,k=64)", "matmul(m=61,n=67,k=59)",
        "matmul(m=1,n=513,k=300)", "matmul(m=300,n=1,k=129)",
        "matmul(m=50,n=70,k=65,dtype=f16)",
        "matmul(m=64,n=64,k=48,dtype=f16,activation=relu)",
        "matmul(m=50,n=70,k=65,dtype=bf16)",
        "matmul(m=48,n=72,k=64,dtype=i8)"}},
      {"pool2d",
       {"pool2d(n=1,h=28,w=28,c=32,kh=2,kw=2,stride=2)",
        "pool2d(n=2,h=17,w=15,c=21,kh=3,kw=3,stride=2,pad=1)",
        "pool2d(n=1,h=17,w=19,c=21,kh=3,kw=2,pad=1,kind=avg)",
        "pool2d(n=3,h=14,w=15,c=19,kind=global_avg)",
        "pool2d(n=1,h=16,w=20,c=12,kh=2,kw=2,stride=2,kind=avg,layout=NCHW)",
        "pool2d(n=1,h=15,w=14,c=18,kh=3,kw=3,pad=1,dtype=f16)",
        "pool2d(n=1,h=15,w=14,c=18,kh=3,kw=3,kind=avg,dtype=bf16)",
        "pool2d(n=1,h=15,w=14,c=18,kh=3,kw=3,pad=1,dtype=i8)"}},
      {"reduce",
       {"reduce(shape=64x512,axes=1)", "reduce(shape=131x67,axes=0)",
        "reduce(shape=15x37x29,axes=1,kind=max)",
        "reduce(shape=15x37x29,axes=0x2,kind=mean)",
        "reduce(shape=10001,axes=0)", "reduce(shape=37x161,axes=1,kind=argmax)",
        "reduce(shape=60x130,axes=1,dtype=f16)",
        "reduce(shape=60x130,axes=0,kind=mean,dtype=bf16)",
        "reduce(shape=60x130,axes=1,kind=argmin,dtype=i8)"}},
      {"rms_norm",
       {"rms_norm(rows=64,cols=256)", "rms_norm(rows=37,cols=131)",
        "rms_norm(rows=3,cols=3001)", "rms_norm(rows=48,cols=130,dtype=f16)",
        "rms_norm(rows=48,cols=130,dtype=bf16)"}},
      {"slice",
       {"slice(shape=128x256,begin=8x16,size=100x200)",
        "slice(shape=90x137,begin=3x1,size=80x135)",
        "slice(shape=90x137,begin=0x2,size=44x45,step=2x3)",
        "slice(shape=90x137,begin=3x1,size=80x135,dtype=f16)",
        "slice(shape=90x137,begin=3x1,size=80x135,dtype=bf16)",
        "slice(shape=90x137,begin=3x1,size=80x135,dtype=i8)"}},
      {"softmax",
       {"softmax(rows=64,cols=256)", "softmax(rows=37,cols=131)",
        "softmax(rows=3,cols=3001)", "softmax(rows=48,cols=130,dtype=f16)",
        "softmax(rows=48,cols=130,dtype=bf16)"}},
      {"transpose",
       {"transpose(shape=128x200,perm=1x0)",
        "transpose(shape=15x37x29,perm=2x0x1)",
        "transpose(shape=13x14x15x6,perm=3x1x2x0)",
        "transpose(shape=67x135,perm=1x0,dtype=f16)",
        "transpose(shape=67x135,perm=1x0,dtype=bf16)",
        "transpose(shape=67x135,perm=1x0,dtype=i8)"}},
  };
  return shapes;
}

}  // namespace

std::vector<std::string> ShapesOf(const Op& op) {
  const auto found = Shapes().find(op.name);
  return found == Shapes().end() ? op.samples : found->second;
}

}  // namespace regatta
