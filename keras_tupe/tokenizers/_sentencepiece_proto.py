"""The part of SentencePiece's model format that this package reads and changes.

The classes that come with `sentencepiece` were made by one version of protobuf and refuse to run
with an older one, such as Apache Beam's. These are made when they are imported, so any version
does. Fields that are not named here are kept as they are.
"""

import enum

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


class PieceType(enum.IntEnum):
    """What a piece is."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def _model_class():
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_tupe/sentencepiece.proto", package="keras_tupe", syntax="proto2"
    )
    model = file.message_type.add(name="Model")
    piece = file.message_type.add(name="Piece")
    for name, number, kind in (
        ("piece", 1, kinds.TYPE_STRING),
        ("score", 2, kinds.TYPE_FLOAT),
        ("type", 3, kinds.TYPE_INT32),  # an enumeration in the original: the same on the wire
    ):
        field = piece.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
        if name == "type":
            field.default_value = str(int(PieceType.NORMAL))
    model.field.add(
        name="pieces",
        number=1,
        type=kinds.TYPE_MESSAGE,
        type_name=".keras_tupe.Piece",
        label=kinds.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("keras_tupe.Model"))


ModelProto = _model_class()
