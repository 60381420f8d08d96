"""Which operators TorchNeuron registers, and which of their arguments it keys by value.

Source: the public copy of TorchNeuron of April 2026 (version 0.1.0), `python_ops/torch_mlir/ops`; never checked on
Trainium. Names are overloads without `aten::`. Names that torch 2.13 has no overload for are left out: nothing reaches
them.
"""

from __future__ import annotations

REGISTERED: frozenset[str] = frozenset(
    """
    _foreach_add.List _foreach_add.List_out _foreach_add.Scalar _foreach_add.ScalarList
    _foreach_add.ScalarList_out _foreach_add.Scalar_out _foreach_add.Tensor _foreach_add.Tensor_out
    _foreach_add_.List _foreach_add_.Scalar _foreach_add_.ScalarList _foreach_add_.Tensor _foreach_div.List
    _foreach_div.List_out _foreach_div.Scalar _foreach_div.ScalarList _foreach_div.ScalarList_out
    _foreach_div.Scalar_out _foreach_div.Tensor _foreach_div.Tensor_out _foreach_div_.List _foreach_div_.Scalar
    _foreach_div_.ScalarList _foreach_div_.Tensor _foreach_mul.List _foreach_mul.List_out _foreach_mul.Scalar
    _foreach_mul.ScalarList _foreach_mul.ScalarList_out _foreach_mul.Scalar_out _foreach_mul.Tensor
    _foreach_mul.Tensor_out _foreach_mul_.List _foreach_mul_.Scalar _foreach_mul_.ScalarList
    _foreach_mul_.Tensor _foreach_norm.Scalar _foreach_norm.Scalar_out _foreach_sub.List _foreach_sub.List_out
    _foreach_sub.Scalar _foreach_sub.ScalarList _foreach_sub.ScalarList_out _foreach_sub.Scalar_out
    _foreach_sub_.List _foreach_sub_.Scalar _foreach_sub_.ScalarList _fused_adamw_ _fused_adamw_.tensor_lr
    _fused_rms_norm _fused_rms_norm_backward _index_put_impl_ _log_softmax _log_softmax.out
    _log_softmax_backward_data _log_softmax_backward_data.out _softmax _softmax.out _softmax_backward_data
    _softmax_backward_data.out abs abs.out add.Tensor add.out add_.Tensor addcdiv addcdiv.out addcmul
    addcmul.out addmm addmm.out addmv addmv.out addmv_ all all.all_out all.out amax amax.out amin amin.out any
    any.all_out any.out arange arange.start_out batch_norm_backward_elemt batch_norm_backward_elemt.out
    batch_norm_backward_reduce batch_norm_backward_reduce.out batch_norm_elemt batch_norm_elemt.out
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_stats.out bitwise_and.Tensor_out
    bitwise_left_shift.Scalar_Tensor bitwise_left_shift.Scalar_Tensor_out bitwise_left_shift.Tensor
    bitwise_left_shift.Tensor_Scalar bitwise_left_shift.Tensor_Scalar_out bitwise_left_shift.Tensor_out
    bitwise_not bitwise_not.out bitwise_or.Tensor_out bitwise_right_shift.Scalar_Tensor
    bitwise_right_shift.Scalar_Tensor_out bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar
    bitwise_right_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_out bitwise_xor.Tensor_out bmm bmm.out cat
    cat.out ceil ceil.out clamp clamp.Tensor clamp.Tensor_out clamp.out clamp_max clamp_max.Tensor
    clamp_max.Tensor_out clamp_max.out clamp_min clamp_min.Tensor clamp_min.Tensor_out clamp_min.out
    constant_pad_nd convolution convolution_backward cos cos.out cumsum cumsum.out div div.out div.out_mode
    div_.Tensor dot dot.out embedding embedding_dense_backward embedding_dense_backward.out eq eq.Scalar_out
    eq.Tensor_out erf erf.out erfinv erfinv.out exp exp.out eye eye.m eye.m_out eye.out fill_.Scalar
    fill_.Tensor flip flip.out floor_divide floor_divide.out full full.out gather gather.out ge ge.Scalar_out
    ge.Tensor_out gelu gelu.out gelu_ gelu_backward gelu_backward.grad_input gt gt.Scalar_out gt.Tensor_out
    histc histc.out index_add index_add.out index_add_ index_copy index_copy.out index_copy_ index_select
    index_select.out index_select_backward isfinite isinf isnan isneginf isneginf.out le le.Scalar_out
    le.Tensor_out lerp.Scalar lerp.Scalar_out lerp.Tensor lerp.Tensor_out lerp_.Scalar lerp_.Tensor
    linalg_vector_norm linalg_vector_norm.out linear linear_backward log log.out logical_and logical_and.out
    logical_not logical_not.out logical_or logical_or.out logical_xor logical_xor.out lt lt.Scalar_out
    lt.Tensor_out masked_fill_.Scalar masked_select masked_select.out max max.dim max.dim_max max.unary_out mean
    mean.dim mean.dtype_out mean.out mm mm.out mul.Scalar mul.Scalar_out mul.Tensor mul.out mv mv.out
    native_dropout native_dropout_backward native_layer_norm native_layer_norm.out native_layer_norm_backward
    native_layer_norm_backward.out ne ne.Scalar_out ne.Tensor_out neg neg.out nll_loss_backward nll_loss_forward
    nonzero_static nonzero_static.out one_hot ones ones.out ones_like pow.Tensor_Scalar_out
    pow.Tensor_Tensor_out reciprocal reciprocal.out reciprocal_ reflection_pad1d reflection_pad2d
    reflection_pad3d relu relu.out relu_ remainder remainder.Tensor_out repeat repeat_interleave.Tensor
    replication_pad1d replication_pad2d replication_pad2d.out replication_pad3d rsqrt rsqrt.out scalar_tensor
    scatter.reduce scatter.reduce_out scatter.src scatter.src_out scatter.value_out scatter.value_reduce_out sgn
    sgn.out sigmoid sigmoid.out sigmoid_backward sigmoid_backward.grad_input sign sign.out signbit signbit.out
    silu silu.out silu_backward sin sin.out slice_backward softplus softplus.out softplus_backward
    softplus_backward.grad_input sqrt sqrt.out stack stack.out sub.Tensor sub.out sub_.Tensor sum
    sum.IntList_out sum.dim_IntList tanh tanh.out tanh_backward threshold threshold.out threshold_backward
    threshold_backward.grad_input topk topk.values tril tril.out triu triu.out trunc trunc.out
    value_selecting_reduction_backward where.self where.self_out zero_ zeros zeros.out
    """.split()
)
"""Overloads that compile: everything else runs on the CPU of the host."""

REGISTERED_BY_HAND: frozenset[str] = frozenset(
    """
    copy_ _to_copy contiguous scatter_add scatter_add.out scatter_add_ gather gather.out nonzero nonzero.out
    index.Tensor index.Tensor_out rms_norm _grouped_mm _native_multi_head_attention
    _native_multi_head_attention.out _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_fused_attention_overrideable_backward
    """.split()
)
"""Overloads that TorchNeuron registers outside its generated list."""

_BY_VALUE = """
_foreach_add.List _foreach_add.List_out _foreach_add.Tensor _foreach_add.Tensor_out _foreach_add_.List
  _foreach_add_.Tensor _foreach_sub.List _foreach_sub.List_out _foreach_sub_.List add.Tensor add.out add_.Tensor
  sub.Tensor sub.out sub_.Tensor: alpha
_foreach_norm.Scalar _foreach_norm.Scalar_out: ord dtype
_fused_rms_norm native_layer_norm native_layer_norm.out: normalized_shape eps
_fused_rms_norm_backward native_layer_norm_backward native_layer_norm_backward.out: normalized_shape output_mask
_index_put_impl_: accumulate unsafe
_log_softmax _log_softmax.out _softmax _softmax.out: dim half_to_float
_log_softmax_backward_data _log_softmax_backward_data.out _softmax_backward_data _softmax_backward_data.out: dim
  input_dtype
_scaled_dot_product_fused_attention_overrideable: dropout_p is_causal scale
_to_copy scalar_tensor sum: dtype
addmm addmm.out addmv addmv.out addmv_: beta alpha
all.out amax amax.out amin amin.out any.out max.dim max.dim_max mean.dim mean.out: dim keepdim
arange: end dtype
arange.start_out: start end step
batch_norm_stats batch_norm_stats.out: eps
cat cat.out index_copy index_copy.out index_copy_ index_select index_select.out scatter.src scatter.src_out
  scatter.value_out scatter_add scatter_add.out scatter_add_ stack stack.out: dim
constant_pad_nd: pad value
convolution: stride padding dilation transposed output_padding groups
convolution_backward: bias_sizes stride padding dilation transposed output_padding groups output_mask
cumsum cumsum.out: dim dtype
div.out_mode: rounding_mode
embedding: padding_idx scale_grad_by_freq sparse
embedding_dense_backward embedding_dense_backward.out: num_weights padding_idx scale_grad_by_freq
eye eye.out: n
eye.m eye.m_out: n m
fill_.Scalar fill_.Tensor: value
flip flip.out: dims
full full.out ones.out zeros.out: size
gather gather.out: dim sparse_grad
histc histc.out: bins min max
index_add index_add.out index_add_: dim alpha
index_select_backward: self_sizes dim
linalg_vector_norm linalg_vector_norm.out: ord dim keepdim dtype
linear_backward: output_mask
native_dropout: p train
native_dropout_backward: scale
nll_loss_backward nll_loss_forward: reduction ignore_index
nonzero_static nonzero_static.out: size fill_value
one_hot: num_classes
ones: size dtype
pow.Tensor_Scalar_out pow.Tensor_Tensor_out: exponent
reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad2d.out
  replication_pad3d: padding
repeat: repeats
repeat_interleave.Tensor: output_size
scatter.reduce scatter.reduce_out scatter.value_reduce_out: dim reduce
slice_backward: input_sizes dim start end step
softplus softplus.out softplus_backward softplus_backward.grad_input: beta threshold
sum.IntList_out sum.dim_IntList: dim keepdim dtype
threshold threshold.out: threshold value
threshold_backward threshold_backward.grad_input: threshold
topk topk.values: k dim largest sorted
tril tril.out triu triu.out: diagonal
value_selecting_reduction_backward: dim sizes keepdim
zeros: size dtype device
"""

BY_VALUE: dict[str, frozenset[str]] = {}
"""Names of the arguments whose value is part of the key, by overload."""

for _line in _BY_VALUE.replace("\n  ", " ").split("\n"):
    _ops, _, _names = _line.partition(": ")
    BY_VALUE.update((_op, frozenset(_names.split())) for _op in _ops.split())

UNUSED: dict[str, frozenset[str]] = {
    "ones_like": frozenset({"self"}),
    "zero_": frozenset({"self"}),
    "fill_.Scalar": frozenset({"self"}),
    "fill_.Tensor": frozenset({"self"}),
}
"""Inputs of which only shape and dtype matter: the graph does not read them, so their layout changes nothing."""

REDUCTIONS: frozenset[str] = frozenset(
    """
    sum sum.dim_IntList sum.IntList_out mean mean.dim mean.out mean.dtype_out max max.unary_out max.dim max.dim_max
    amax amax.out amin amin.out all all.out all.all_out any any.out any.all_out linalg_vector_norm
    linalg_vector_norm.out
    """.split()
)
"""Operators that give their identity for an empty tensor: by `full`, which compiles."""

UNCERTAIN_BY_VALUE: dict[str, frozenset[str]] = {
    op: frozenset({"alpha"}) for op, names in BY_VALUE.items() if "alpha" in names
}
"""Arguments by value in the source of April 2026 of which it is not known whether 2.14 still keys them so."""

ON_HOST_BY_HAND: tuple[str, ...] = ("select_backward", "argsort.stable")
"""Overloads that TorchNeuron registers only to run them on the host, in place of torch's composites."""

NEVER_CUT_SHORT: frozenset[str] = frozenset({"_scaled_dot_product_fused_attention_overrideable_backward"})
"""Operators whose empty arguments stand for what there is none of: offsets of packed sequences, a bias."""
