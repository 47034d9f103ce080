# The PTX simulator: snippets with values worked out by hand, kernels compiled
# by NVRTC where there is one.
regatta_test(compiler_ptxsim_test
  ptxsim/cost_model_test.cc
  ptxsim/cubin_test.cc
  ptxsim/fault_test.cc
  ptxsim/float_ops_test.cc
  ptxsim/integer_ops_test.cc
  ptxsim/matmul_kernels.cc
  ptxsim/matrix_ops_test.cc
  ptxsim/memory_ops_test.cc
  ptxsim/nvrtc_elementwise_test.cc
  ptxsim/nvrtc_matmul_test.cc
  ptxsim/parser_test.cc
  ptxsim/snippet.cc
  ptxsim/warp_ops_test.cc
  LIBS regatta_ptxsim regatta_module regatta_compiler_version TIMEOUT 300)
